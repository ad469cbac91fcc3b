// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vuln runs govulncheck on modules:
//
//	vuln GOVULNCHECK MODULE...
//
// It first fetches the index of the vulnerability database (GOVULNDB, by default https://vuln.go.dev). If that fails,
// nothing is checked, and the last line says so. The status is then 0, because a machine might have no access to the
// database, but 1 in a hosted workflow (GITHUB_ACTIONS), which has access. After the database has answered, every
// failure of govulncheck is a failure of this command.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	defaultDatabase = "https://vuln.go.dev"
	answerTimeout   = 30 * time.Second
	usageStatus     = 2
)

var errUnreachable = errors.New("vulnerability database cannot be reached")

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: vuln GOVULNCHECK MODULE...")
		os.Exit(usageStatus)
	}
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = defaultDatabase
	}
	err := checkModules(context.Background(), os.Stdout, database, os.Args[1], os.Args[2:])
	os.Exit(printResult(os.Stdout, err, os.Getenv("GITHUB_ACTIONS") == "true"))
}

// printResult prints the result of the check, and returns the exit status.
func printResult(out io.Writer, err error, isHosted bool) int {
	switch {
	case err == nil:
		return 0
	case !errors.Is(err, errUnreachable):
		fmt.Fprintln(out, "vuln:", err)
		return 1
	}
	fmt.Fprintln(out, "not checked:", err)
	if isHosted {
		return 1
	}
	return 0
}

// checkModules runs govulncheck in the folder of each module. After a failure it continues with the other modules.
func checkModules(ctx context.Context, out io.Writer, database, govulncheck string, modules []string) error {
	if err := fetchIndex(ctx, database); err != nil {
		return err
	}
	var failures []error
	for _, module := range modules {
		fmt.Fprintln(out, "govulncheck", module)
		//nolint:gosec // the Makefile names the program
		cmd := exec.CommandContext(ctx, govulncheck, "-db", database, "./...")
		cmd.Dir, cmd.Stdout, cmd.Stderr = module, out, out
		if err := cmd.Run(); err != nil {
			failures = append(failures, fmt.Errorf("check module %s: %w", module, err))
		}
	}
	return errors.Join(failures...)
}

// fetchIndex fetches the database's index. The error wraps errUnreachable if the index cannot be fetched.
func fetchIndex(ctx context.Context, database string) error {
	address, err := url.Parse(database)
	if err != nil {
		return fmt.Errorf("parse GOVULNDB: %w", err)
	}
	if address.Scheme == "file" {
		//nolint:gosec // whoever runs this names the database
		if _, err := os.Stat(filepath.Join(address.Path, "index", "db.json")); err != nil {
			return fmt.Errorf("%w: %w", errUnreachable, err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	//nolint:gosec // whoever runs this names the database
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.JoinPath("index", "db.json").String(), nil)
	if err != nil {
		return fmt.Errorf("request the index: %w", err)
	}
	response, err := http.DefaultClient.Do(request) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreachable, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers %s", errUnreachable, request.URL, response.Status)
	}
	return nil
}
