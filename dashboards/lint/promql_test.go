// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSelectors(t *testing.T) {
	for name, test := range map[string]struct {
		expr string
		want []selector
	}{
		"a name":   {"up", []selector{{name: "up"}}},
		"matchers": {`up{job="a",x!~"b|{c}"}`, []selector{{name: "up", matchers: `job="a",x!~"b|{c}"`}}},
		"a rate": {"sum by (job) (rate(a_total[5m]))",
			[]selector{{name: "a_total", function: "rate", ranged: true}}},
		"by at the end": {"sum(a) by (b) / on (c) group_left (d) max without (e) (f)",
			[]selector{{name: "a", function: "sum"}, {name: "f"}}},
		"operators": {"a and b unless on () c == bool 1 or d offset 10m > 1e3",
			[]selector{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}}},
		"recorded": {"bellwether:sli_bad_version:sum1h * 60", []selector{{name: "bellwether:sli_bad_version:sum1h"}}},
		"at the end": {"sum_over_time(a[1h] @ end()) > 0",
			[]selector{{name: "a", function: "sum_over_time", ranged: true}}},
		"a subquery": {"avg_over_time((avg(a{x='1'}))[30m:1m])",
			[]selector{{name: "a", matchers: "x='1'", function: "avg"}}},
		"labels in strings": {`label_replace(a, "b", "$1", "c", "(.+)") - time()`,
			[]selector{{name: "a", function: "label_replace"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, findSelectors(test.expr), cmp.AllowUnexported(selector{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
