// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/bellwether-dev/bellwether/testbed/bench/figure"
)

// machine describes this one, as far as it tells.
func machine() figure.Machine {
	return figure.Machine{
		Cores: runtime.NumCPU(), MemoryBytes: memory(), Load: load(),
		Go: runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// memory is the size of the machine's memory, or 0.
func memory() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}

// load is the load average of the last minute, or -1.
func load() float64 {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(content), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return value
}
