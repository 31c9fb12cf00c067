package e2e

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// ticksPerSecond is the unit of the times in /proc (USER_HZ, the same on all Linux machines that Go runs on).
const ticksPerSecond = 100

// usage is what a process has used so far.
type usage struct {
	cpu time.Duration
	// peak is its largest resident memory, in bytes.
	peak int64
}

// usageOf asks the kernel about a running process.
func usageOf(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	// The second field is a name in parentheses, which may hold blanks; utime and stime are fields 14 and 15.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return usage{}, fmt.Errorf("process %d: %d fields in its statistics", pid, len(fields))
	}
	ticks := int64(0)
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("process %d: %w", pid, err)
		}
		ticks += n
	}
	peak, err := peakOf(pid)
	return usage{cpu: time.Duration(ticks) * time.Second / ticksPerSecond, peak: peak}, err
}

func peakOf(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if value, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			kib, err := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(value), []byte("kB")))), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("process %d: no VmHWM in its status", pid)
}
