// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/bundles/build"
)

func TestRead(t *testing.T) {
	got, err := build.ReadMarkers("testdata/api")
	if err != nil {
		t.Fatal(err)
	}
	want := build.Descriptions{{
		Kind: "Snack", Version: "v1alpha1", DisplayName: "A Snack", Description: "Snack is something to eat.",
		Resources: []operatorsv1alpha1.APIResourceReference{{Kind: "Deployment", Version: "v1", Name: "snack"},
			{Kind: "Service", Version: "v1"}},
		SpecDescriptors: []operatorsv1alpha1.SpecDescriptor{
			{Path: "size", DisplayName: "Pieces", Description: "Size is how many pieces there are.",
				XDescriptors: []string{"urn:alm:descriptor:com.tectonic.ui:podCount",
					"urn:alm:descriptor:io.kubernetes:custom"}},
			{Path: "httpPort", DisplayName: "HTTP Port", XDescriptors: []string{"urn:a", "urn:b"}},
			{Path: "paused", DisplayName: "Paused"},
			{Path: "toppings[0].name", DisplayName: "Name", Description: "Name of the topping."},
		},
		StatusDescriptors: []operatorsv1alpha1.StatusDescriptor{{Path: "conditions", DisplayName: "Conditions"}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadErrors(t *testing.T) {
	for dir, want := range map[string]string{
		"testdata/wrong": `field size: the type of a descriptor is spec or status, not "metadata"`,
		"testdata/none":  "",
		"../crd":         "no type in ../crd has a marker",
	} {
		if _, err := build.ReadMarkers(dir); !errors.Is(err, build.ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
