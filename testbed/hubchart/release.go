// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package hubchart

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/cli"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/bellwether-dev/bellwether/charts"
)

// Helm returns what Helm's actions need to work on releases in a namespace of the cluster.
func Helm(kubeconfig, namespace string) (*action.Configuration, error) {
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(namespace)
	c := &action.Configuration{}
	if err := c.Init(settings.RESTClientGetter(), namespace, "secret", func(string, ...any) {}); err != nil {
		return nil, fmt.Errorf("prepare Helm: %w", err)
	}
	return c, nil
}

// What the CRDs of Previous lack.
const (
	// LaterKind is a CRD that there was not.
	LaterKind = "alertsilences.bellwether.dev"
	// OlderKind is the CRD without LaterField and without LaterColumn.
	OlderKind = "operatorrollouts.bellwether.dev"
	// LaterField is a field of the spec of OlderKind that the earlier chart lacks.
	LaterField = "pausedReason"
	// LaterColumn is a printer column of OlderKind that the earlier chart lacks.
	LaterColumn = "Message"
)

// Previous stands for the chart of an earlier release. It is made of the current one: its CRDs are in the folder crds,
// where they were at first and where Helm leaves them alone in upgrades, and they lack what the constants say.
func Previous() (*chart.Chart, error) {
	loaded, err := charts.Load()
	if err != nil {
		return nil, err
	}
	loaded.Metadata.Version = "0.0.9"
	delete(loaded.Values, "crds")
	loaded.Templates = slices.DeleteFunc(loaded.Templates, func(f *chart.File) bool {
		return f.Name == "templates/crds.yaml"
	})
	var files []*chart.File
	for _, f := range loaded.Files {
		name, isCRD := strings.CutPrefix(f.Name, "files/")
		isCRD = isCRD && strings.HasPrefix(name, "crds/")
		if !isCRD {
			files = append(files, f)
			continue
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(f.Data, crd); err != nil {
			return nil, fmt.Errorf("decode %s: %w", f.Name, err)
		}
		if crd.GetName() == LaterKind {
			continue
		}
		text, err := yaml.Marshal(Older(crd))
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.Name, err)
		}
		files = append(files, &chart.File{Name: name, Data: text})
	}
	loaded.Files = files
	return loaded, nil
}

// Older returns a CRD as it was in Previous.
func Older(crd *unstructured.Unstructured) *unstructured.Unstructured {
	crd = crd.DeepCopy()
	if crd.GetName() != OlderKind {
		return crd
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version := v.(map[string]any) //nolint:forcetypeassert // a CRD that we generate
		unstructured.RemoveNestedField(version, "schema", "openAPIV3Schema", "properties", "spec", "properties",
			LaterField)
		columns, _, _ := unstructured.NestedSlice(version, "additionalPrinterColumns")
		version["additionalPrinterColumns"] = slices.DeleteFunc(columns, func(c any) bool {
			column, _ := c.(map[string]any)
			return column["name"] == LaterColumn
		})
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions") // of what was just read
	return crd
}
