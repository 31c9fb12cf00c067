package program

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"
)

// FromEnvironment sets every flag that was not set on the command line from its environment variable, if that exists:
// TENON_BATCH_IDLE_DURATION for --batch-idle-duration.
func FromEnvironment(flags *pflag.FlagSet) error {
	var wrong []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := EnvironmentName(f.Name)
		value, set := os.LookupEnv(name)
		if !set || f.Changed {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			wrong = append(wrong, fmt.Errorf("%s=%q: %w", name, value, err))
		}
	})
	return errors.Join(wrong...)
}

// EnvironmentName is the environment variable of a flag.
func EnvironmentName(flag string) string {
	return "TENON_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
