package main

import "github.com/spf13/cobra"

func newCasesCommand(w world) *cobra.Command { return &cobra.Command{Use: "cases"} }
