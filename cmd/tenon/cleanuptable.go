package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
)

// table writes what was found, kind by kind.
func (r *cleanupReport) table(out io.Writer, now time.Time) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %s: ", r.Cluster, r.Region)
	if len(r.Items) == 0 {
		b.WriteString("nothing is left\n")
	} else {
		b.WriteString(r.summary() + "\n")
	}
	for _, kind := range cleanup.Kinds() {
		if err := r.section(&b, kind, now); err != nil {
			return err
		}
	}
	if len(r.Untagged) > 0 {
		fmt.Fprintf(&b, "\nNot touched, since the tag %s=%s is missing: %s\n", cleanup.ClusterTag, r.Cluster, strings.Join(r.Untagged, ", "))
	}
	for _, unknown := range r.Unknown {
		fmt.Fprintf(&b, "\nNOT LOOKED UP: %s\n", unknown)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "\nWARNING: %s\n", warning)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// summary counts the items of each kind, and says what they cost.
func (r *cleanupReport) summary() string {
	counts := map[cleanup.Kind]int{}
	price, priced := 0.0, false
	for _, item := range r.Items {
		counts[item.Kind]++
		price, priced = price+item.PricePerHour, priced || item.PricePerHour > 0
	}
	var parts []string
	for _, kind := range cleanup.Kinds() {
		if n := counts[kind]; n == 1 {
			parts = append(parts, "1 "+string(kind))
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %ss", n, kind))
		}
	}
	text := strings.Join(parts, ", ")
	if priced {
		text += fmt.Sprintf("; $%.4f per hour", price)
	}
	return text
}

// section writes the items of one kind.
func (r *cleanupReport) section(out io.Writer, kind cleanup.Kind, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	head := false
	for _, item := range r.Items {
		if item.Kind != kind {
			continue
		}
		if !head {
			head = true
			_, _ = fmt.Fprintf(out, "\n%sS\n", strings.ToUpper(string(kind)))
			if kind == cleanup.KindInstance {
				_, _ = fmt.Fprintln(table, "ID\tSTATE\tTYPE\tCAPACITY\tZONE\t$/HOUR\tAGE\tNAME\tTAGS")
			} else {
				_, _ = fmt.Fprintln(table, "ID\tNAME\tAGE\tTAGS")
			}
		}
		tags := strings.Join(item.Tags, " ")
		if kind == cleanup.KindInstance {
			price := "-"
			if item.PricePerHour > 0 {
				price = fmt.Sprintf("%.4f", item.PricePerHour)
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", item.ID, item.State, item.InstanceType, item.CapacityType, item.Zone, price,
				age(item.Created, now), cmp.Or(item.Name, "-"), tags)
			continue
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", item.ID, cmp.Or(item.Name, "-"), age(item.Created, now), tags)
	}
	return table.Flush()
}

// age returns how old something is, as kubectl writes it.
func age(created, now time.Time) string {
	if created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(created))
}

// outcome says what was removed and what remains.
func (r *cleanupReport) outcome() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d of %d removed\n", r.Removed, len(r.Items))
	for _, failure := range r.Remaining {
		fmt.Fprintf(&b, "REMAINS: %s %s: %s\n", failure.Item.Kind, failure.Item.ID, failure.Error)
	}
	return b.String()
}
