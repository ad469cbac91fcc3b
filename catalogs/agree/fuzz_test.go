// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agree_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
	"github.com/bellwether-dev/bellwether/catalogs/agree"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

// FuzzCheck checks any graph that a reader accepts: Check must end, return the same report twice, and give every
// route a verdict that matches the ends of its walks.
func FuzzCheck(f *testing.F) {
	f.Add("1.0.0\n1.1.0 replaces 1.0.0\n1.2.0 replaces 1.1.0 range <1.2.0", "p.v0.1.0", "")
	f.Add("1.2.0\n1.1.0 replaces 1.2.0 range >=1.0.0", "other", "1.3.0")
	f.Add("1.0.0\n1.0.1 skips 1.0.0\n1.1.0 skips 1.0.1,1.0.0", "", "")
	f.Add("1.0.0+1\n1.0.0+2 replaces 1.0.0+1\n1.0.0-rc.1 skips 1.0.0+2", "p.v1.0.0+3", "1.0.0")
	f.Fuzz(func(t *testing.T, notation, name, version string) {
		if strings.Count(notation, "\n") > 40 || len(notation) > 4000 {
			t.Skip("large graphs are for the benchmark")
		}
		p, err := catalogs.ReadPackage(catalogs.SingleFile("graph",
			strings.NewReader(catalogtest.Graph("p", notation))), "p")
		if err != nil {
			t.Skip("no valid package")
		}
		installed := catalogs.Installed{Name: name, Version: version}
		report, err := agree.Check(p, installed)
		if err != nil {
			t.Fatalf("a valid package could not be checked: %v", err)
		}
		again, err := agree.Check(p, installed)
		if diff := cmp.Diff(report, again, cmp.Comparer(sameText)); err != nil || diff != "" {
			t.Errorf("checked again (%v): -first +again\n%s", err, diff)
		}
		for _, c := range report.Channels {
			for _, r := range c.Routes {
				arrive := r.Plan.End == agree.Arrives && r.V0.End == agree.Arrives && r.V1.End == agree.Arrives
				same := r.Plan.Next() == r.V0.Next() && r.V0.Next() == r.V1.Next()
				if r.Verdict == agree.Agrees && (!arrive || !same) {
					t.Errorf("from %v: agrees, with %+v, %+v and %+v", r.Installed, r.Plan, r.V0, r.V1)
				}
				if (r.Verdict == agree.V1Differs || r.Verdict == agree.V0Differs) && !arrive {
					t.Errorf("from %v: %s, and not all arrive: %+v, %+v and %+v", r.Installed, r.Verdict, r.Plan, r.V0,
						r.V1)
				}
			}
		}
		if err := report.Strict(); err != nil && !errors.Is(err, agree.ErrDisagree) {
			t.Errorf("strict: %v", err)
		}
	})
}

func sameText(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}
