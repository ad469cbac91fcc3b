// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"fmt"

	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/internal/untrusted"
)

// kindSLO is the kind of the objects that are applied to a hub.
const kindSLO = "OperatorSLO"

// readOperatorSLO adds the objectives of an OperatorSLO to the set.
func readOperatorSLO(into *set, doc []byte) error {
	var object v1alpha1.OperatorSLO
	if err := untrusted.UnmarshalStrict(doc, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	op, err := spec.Operator(cmp.Or(object.Namespace, into.namespace), object.Spec)
	if err != nil {
		return err
	}
	if err := into.merge(op); err != nil {
		return err
	}
	for _, s := range object.Spec.Services {
		into.report.Given.Services = append(into.report.Given.Services, GivenProbe{Operator: op.ID(), Name: s.Name})
	}
	return nil
}
