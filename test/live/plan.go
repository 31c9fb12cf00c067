package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	tenonaws "github.com/tenon-sh/tenon/cloud/aws"
)

// printPlan prints what a run would do, at the built-in prices of us-east-1 and for the dearest of the types, without any
// call.
func printPlan(out io.Writer, s settings) error {
	dearest := 0.0
	for _, name := range s.types {
		price, ok := tenonaws.BuiltinPrice(name)
		if !ok {
			return fmt.Errorf("--instance-types: no price is known of %s", name)
		}
		dearest = max(dearest, price)
	}
	plan, later := steps(), laterSteps()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "STEP\tINSTANCES\tAT MOST\tSHOWS")
	for _, s := range append(plan, later...) {
		fmt.Fprintf(w, "%s\t%d\t$%.2f\t%s\n", s.name, s.instances, s.cost(dearest, planDisk), s.shows)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the plan: %w", err)
	}
	_, err := fmt.Fprintf(out, "\nAt most $%.2f, and $%.2f for --resume, if every instance ran for %v and every replay launched anew, at $%.4f an hour, the built-in\n"+
		"price of the dearest of %v; the real prices are looked up before anything is launched. Everything carries the tag %s.\n",
		atMost(plan, dearest, planDisk), atMost(later, dearest, planDisk), longest, dearest, s.types, tagKey)
	return err
}
