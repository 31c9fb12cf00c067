module github.com/tenon-sh/tenon/tools/tables

go 1.26.0
