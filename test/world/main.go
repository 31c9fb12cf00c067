package world

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Main runs the tests of a package and returns the exit code. It runs parallel tests at the same time, however few
// processors there are, because they mostly wait.
func Main(m *testing.M, parallel int) int {
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(parallel)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	log.SetLogger(zapr.NewLogger(zap.NewNop())) // the client library's own
	return m.Run()
}
