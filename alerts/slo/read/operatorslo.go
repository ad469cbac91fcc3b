// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/alerts/slo/spec"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// kindSLO is the kind of the objects that are read.
const kindSLO = "OperatorSLO"

// operatorSLOs reads objects as they are applied to a hub, or as kubectl lists
// them.
func operatorSLOs(into *set, text []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		if len(bytes.TrimSpace(doc)) == 0 {
			continue
		}
		if err := operatorSLO(into, doc); err != nil {
			return err
		}
	}
}

func operatorSLO(into *set, doc []byte) error {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := yaml.Unmarshal(doc, &list); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if list.Items != nil {
		for _, item := range list.Items {
			if err := operatorSLO(into, item); err != nil {
				return err
			}
		}
		return nil
	}
	if list.Kind != kindSLO {
		return fmt.Errorf("%w: kind %q among objects of kind %s", ErrFormat, list.Kind, kindSLO)
	}
	var object v1alpha1.OperatorSLO
	if err := yaml.UnmarshalStrict(doc, &object); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	op, err := spec.Operator(cmp.Or(object.Namespace, into.namespace), object.Spec)
	if err != nil {
		return fmt.Errorf("OperatorSLO %s: %w", object.Name, err)
	}
	merged := into.operator(op.ID())
	merged.Team, merged.Criticality = op.Team, op.Criticality
	merged.Objectives = append(merged.Objectives, op.Objectives...)
	merged.Own = append(merged.Own, op.Own...)
	merged.Without = append(merged.Without, op.Without...)
	return nil
}
