// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package budgets_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bellwether-dev/bellwether/alerts/budgets"
	"github.com/bellwether-dev/bellwether/alerts/series"
)

// operators is a Prometheus that has objectives of some operators.
type operators []types.NamespacedName

func (o operators) Query(context.Context, string, time.Time) (model.Vector, error) {
	var out model.Vector
	for _, id := range o {
		out = append(out, &model.Sample{Value: 1, Metric: model.Metric{
			series.OperatorNamespace: model.LabelValue(id.Namespace), series.Operator: model.LabelValue(id.Name)}})
	}
	return out, nil
}

func (o operators) QueryRange(context.Context, string, time.Time, time.Time, time.Duration) (model.Matrix, error) {
	return nil, errors.New("no range is queried to find an operator")
}

func TestFind(t *testing.T) {
	fleet := operators{{Namespace: "fleet", Name: "echo"}, {Namespace: "staging", Name: "echo"},
		{Namespace: "fleet", Name: "backup"}}
	for name, test := range map[string]struct {
		in   operators
		want types.NamespacedName
		err  error
	}{
		"backup":        {in: fleet, want: fleet[2]},
		"fleet/backup":  {in: fleet, want: fleet[2]},
		"staging/echo":  {in: fleet, want: fleet[1]},
		"echo":          {in: fleet, err: budgets.ErrAmbiguous},
		"staging/other": {in: fleet, err: budgets.ErrUnknownOperator},
		"other":         {in: fleet, err: budgets.ErrUnknownOperator},
		"nothing":       {err: budgets.ErrNoRules},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := budgets.Find(t.Context(), test.in, time.Unix(0, 0), name)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%v, %v; want %v, %v", got, err, test.want, test.err)
			}
		})
	}
}
