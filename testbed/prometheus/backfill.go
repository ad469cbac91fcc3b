// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// History is a series with samples of the past, as many as its interval fits between From and To.
type History struct {
	// Name and Labels identify the series.
	Name   string
	Labels map[string]string
	// From is the time of the first sample, To is after the last.
	From, To time.Time
	Interval time.Duration
	// Value gives the sample of a time. False: there is none.
	Value func(time.Time) (float64, bool)
}

// Backfill writes history into the data of a server in dir, which must not run. promtool is the path of build.Promtool.
// Samples of the last three hours may be hidden by what the server scrapes itself.
func Backfill(ctx context.Context, promtool, dir string, history []History) error {
	file, err := os.CreateTemp(dir, "history-*.openmetrics")
	if err != nil {
		return fmt.Errorf("create history: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	err = WriteOpenMetrics(file, history)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	data := filepath.Join(dir, dataDir)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	cmd := exec.CommandContext(ctx, promtool, "tsdb", "create-blocks-from", "openmetrics", "--quiet", file.Name(), data)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write blocks: %w\n%s", err, out)
	}
	return nil
}

// WriteOpenMetrics writes history as promtool reads it: all of a metric together, each series in the order of time.
func WriteOpenMetrics(to io.Writer, history []History) error {
	out := bufio.NewWriter(to)
	sorted := slices.Clone(history)
	slices.SortStableFunc(sorted, func(a, b History) int { return strings.Compare(a.Name, b.Name) })
	for _, h := range sorted {
		id := h.id()
		for at := h.From; at.Before(h.To); at = at.Add(h.Interval) {
			value, ok := h.Value(at)
			if !ok {
				continue
			}
			_, _ = fmt.Fprintf(out, "%s %s %d.%03d\n", id, strconv.FormatFloat(value, 'g', -1, 64), at.Unix(),
				at.Nanosecond()/int(time.Millisecond))
		}
	}
	_, _ = out.WriteString("# EOF\n")
	return out.Flush()
}

// escape writes a label's value as the format asks.
var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// id is the series as the format has it.
func (h History) id() string {
	pairs := make([]string, 0, len(h.Labels))
	for name, value := range h.Labels {
		pairs = append(pairs, name+`="`+escape.Replace(value)+`"`)
	}
	slices.Sort(pairs)
	return h.Name + "{" + strings.Join(pairs, ",") + "}"
}
