// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"

	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
	"github.com/bellwether-dev/bellwether/catalogs/catalogtest"
)

// object is a Kubernetes object, or a part of one, as JSON has it.
type object = map[string]any

// bundle is one version of a synthetic package. Its pods are stubs that are simply ready.
type bundle struct {
	version string
	// replaces and skips are versions.
	replaces  string
	skips     []string
	skipRange string
	// image is named besides the manifests.
	image string
	// schemaBytes is about the size of its CRD.
	schemaBytes int
	// properties come besides those of every bundle.
	properties []object
	// objects come besides the CSV and the CRD.
	objects []object
	// change changes the CSV and the CRD.
	change func(csv, crd object)
}

func csvName(pkg, version string) string { return pkg + ".v" + version }

func group(pkg string) string { return pkg + ".example.com" }

func property(kind string, value any) object { return object{"type": kind, "value": value} }

// fbc is a package of these bundles, all in the channel stable, as a file-based catalog.
func fbc(pkg string, bundles ...bundle) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	entries := make([]object, len(bundles))
	for i, b := range bundles {
		e := object{"name": csvName(pkg, b.version)}
		if b.replaces != "" {
			e["replaces"] = csvName(pkg, b.replaces)
		}
		if b.skipRange != "" {
			e["skipRange"] = b.skipRange
		}
		var skips []string
		for _, version := range b.skips {
			skips = append(skips, csvName(pkg, version))
		}
		if skips != nil {
			e["skips"] = skips
		}
		entries[i] = e
	}
	docs := []object{
		{"schema": "olm.package", "name": pkg, "defaultChannel": "stable"},
		{"schema": "olm.channel", "package": pkg, "name": "stable", "entries": entries},
	}
	for _, b := range bundles {
		docs = append(docs, b.blob(pkg))
	}
	for _, doc := range docs {
		if err := encoder.Encode(doc); err != nil {
			panic(err) // Maps of strings and numbers always marshal.
		}
	}
	return out.Bytes()
}

func (b bundle) blob(pkg string) object {
	name := csvName(pkg, b.version)
	csv, crd := catalogtest.CSV(name, b.version, group(pkg)), catalogtest.CRD(group(pkg), b.schemaBytes)
	// Several operators may share a namespace.
	deploymentOf(csv)["name"] = pkg
	if b.replaces != "" {
		csv["spec"].(object)["replaces"] = csvName(pkg, b.replaces)
	}
	if b.change != nil {
		b.change(csv, crd)
	}
	properties := append([]object{
		property("olm.package", object{"packageName": pkg, "version": b.version}),
		property("olm.gvk", object{"group": group(pkg), "version": "v1", "kind": "Thing"}),
	}, b.properties...)
	for _, o := range append([]object{csv, crd}, b.objects...) {
		raw, err := json.Marshal(o)
		if err != nil {
			panic(err) // Maps of strings and numbers always marshal.
		}
		properties = append(properties, property("olm.bundle.object", object{"data": raw}))
	}
	return object{"schema": "olm.bundle", "package": pkg, "name": name, "image": b.image, "properties": properties}
}

// line is a package of good versions, each replacing the one before.
func line(versions ...string) []bundle {
	bundles := make([]bundle, len(versions))
	for i, version := range versions {
		bundles[i].version = version
		if i > 0 {
			bundles[i].replaces = versions[i-1]
		}
	}
	return bundles
}

// releaseOf a synthetic package, which watches its own namespace only.
func releaseOf(pkg string, pin v1alpha1.CatalogPin, version string) v1alpha1.Release {
	return v1alpha1.Release{
		Package: pkg, Channel: "stable", Version: version, Bundle: csvName(pkg, version),
		Catalog: pin, Install: v1alpha1.InstallSettings{Mode: v1alpha1.InstallOwnNamespace},
	}
}

// deploymentOf is the CSV's only Deployment.
func deploymentOf(csv object) object {
	install := csv["spec"].(object)["install"].(object)["spec"].(object)
	return install["deployments"].([]any)[0].(object)
}

// neverReady has pods that cannot be created, for want of a ServiceAccount; it
// is given up after so many seconds.
func neverReady(deadline int) func(csv, crd object) {
	return func(csv, _ object) {
		spec := deploymentOf(csv)["spec"].(object)
		spec["progressDeadlineSeconds"] = deadline
		spec["template"].(object)["spec"].(object)["serviceAccountName"] = "nobody"
	}
}

// neverReadyUpgrade is neverReady for a new version, in a Deployment of its own: where a Deployment is changed right
// after it became available, Kubernetes can lose that a new ReplicaSet was created, and then no deadline ends.
func neverReadyUpgrade(deadline int) func(csv, crd object) {
	return func(csv, crd object) {
		neverReady(deadline)(csv, crd)
		deployment := deploymentOf(csv)
		deployment["name"] = deployment["name"].(string) + "-next"
	}
}

// needsCRD is a CSV that requires a CRD by name.
func needsCRD(of string) func(csv, crd object) {
	return func(csv, _ object) {
		csv["spec"].(object)["customresourcedefinitions"].(object)["required"] = []any{
			object{"name": "things." + group(of), "version": "v1", "kind": "Thing"},
		}
	}
}
