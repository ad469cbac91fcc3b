// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package gomarkers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/bellwether-dev/bellwether/bundles/build/gomarkers"
)

func TestRead(t *testing.T) {
	got, err := gomarkers.Read("testdata/api")
	if err != nil {
		t.Fatal(err)
	}
	want := gomarkers.Descriptions{{
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
		"../starter":     "no type in ../starter has a marker",
	} {
		if _, err := gomarkers.Read(dir); !errors.Is(err, gomarkers.ErrSource) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
}
