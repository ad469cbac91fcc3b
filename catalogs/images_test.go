// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogs_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bellwether-dev/bellwether/catalogs"
)

// TestReadWithImages reads bundles that run more images than the catalog lists.
func TestReadWithImages(t *testing.T) {
	const csv = `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{
		"name":"echo.v1.0.0","annotations":{"containerImage":"registry.example.com/for-people"}},"spec":{"version":"1.0.0",
		"install":{"strategy":"deployment","spec":{"deployments":[{"name":"echo","spec":{"template":{"spec":{
		"initContainers":[{"name":"init","image":"registry.example.com/init"}],
		"containers":[{"name":"manager","image":"registry.example.com/listed","env":[
			{"name":"RELATED_IMAGE_DB","value":"registry.example.com/db"}]}],
		"volumes":[{"name":"model","image":{"reference":"registry.example.com/model"}}]}}}}]}},
		"relatedImages":[{"name":"tool","image":"registry.example.com/tool"}]}}`
	for name, test := range map[string]struct {
		object string
		want   []string
	}{
		"with its manifests": {csv, []string{"listed", "init", "db", "model", "tool"}},
		"without":            {"", []string{"listed"}},
		"of another kind":    {strings.Replace(csv, `"ClusterServiceVersion"`, `"ConfigMap"`, 1), []string{"listed"}},
		"that OLM cannot decode": {strings.Replace(csv, `"deployments":[`, `"deployments":["echo",`, 1),
			[]string{"listed"}},
	} {
		t.Run(name, func(t *testing.T) {
			properties := `{"type":"olm.package","value":{"packageName":"echo","version":"1.0.0"}}`
			if test.object != "" {
				properties += fmt.Sprintf(`,{"type":"olm.bundle.object","value":{"data":%q}}`,
					base64.StdEncoding.EncodeToString([]byte(test.object)))
			}
			packages, err := catalogs.ReadWithImages(catalogs.SingleFile("f", strings.NewReader(
				`{"schema":"olm.package","name":"echo","defaultChannel":"stable"}
				{"schema":"olm.channel","package":"echo","name":"stable","entries":[{"name":"echo.v1.0.0"}]}
				{"schema":"olm.bundle","package":"echo","name":"echo.v1.0.0","image":"registry.example.com/bundle",
				"relatedImages":[{"name":"manager","image":"registry.example.com/listed"}],"properties":[`+properties+`]}`)), func(string, *catalogs.Bundle) error { return nil })
			if err != nil {
				t.Fatal(err)
			}
			b := packages[0].Bundles["echo.v1.0.0"]
			var got []string
			for _, i := range b.RelatedImages {
				got = append(got, strings.TrimPrefix(i.Image, "registry.example.com/"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" || b.Objects != nil {
				t.Errorf("%d manifests, images (-want +got):\n%s", len(b.Objects), diff)
			}
		})
	}
}
