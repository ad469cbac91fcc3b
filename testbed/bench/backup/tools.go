// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bellwether-dev/bellwether/testbed/process"
)

// tool runs a program with the cluster's kubeconfig and its output in a file. It returns how long it took, and the
// most memory that it had.
func (b *bench) tool(ctx context.Context, output, name string, args ...string) (time.Duration, int64, error) {
	file, err := os.Create(output)
	if err != nil {
		return 0, 0, fmt.Errorf("create output: %w", err)
	}
	defer file.Close() //nolint:errcheck // the program writes it
	var problems bytes.Buffer
	cmd := exec.CommandContext(ctx, b.binaries[name], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.ClusterKubeconfig())
	cmd.Stdout, cmd.Stderr = file, &problems
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, 0, fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, problems.String())
	}
	took := time.Since(began)
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, 0, errors.New("no usage of resources")
	}
	return took, usage.Maxrss << 10, nil
}

// strip removes from a list of `kubectl get` what `kubectl apply` refuses for objects that are gone.
func strip(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read list: %w", err)
	}
	var list struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Items      []map[string]any `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("decode list: %w", err)
	}
	for _, item := range list.Items {
		metadata, _ := item["metadata"].(map[string]any)
		for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
			delete(metadata, field)
		}
	}
	if text, err = json.Marshal(list); err != nil {
		return fmt.Errorf("encode list: %w", err)
	}
	return os.WriteFile(path, text, 0o644)
}

// resetPeak has the kernel forget the most memory that a process had, and returns what it has now.
func resetPeak(pid int) (int64, error) {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600); err != nil {
		return 0, fmt.Errorf("reset the peak of memory: %w", err)
	}
	return process.ResidentBytes(pid)
}

// peak returns the most memory that a process had since resetPeak.
func peak(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the peak of memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, errors.New("the kernel reports no peak of memory")
}
