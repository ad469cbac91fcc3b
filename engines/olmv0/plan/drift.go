// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/engines"
	"github.com/bellwether-dev/bellwether/engines/olmv0/drift"
)

// compare reports how what is installed differs from the bundle, and puts it back
// where the install asks for that. OLM makes the Deployments from the CSV, so the CSV
// comes first. OLM itself puts back neither: it follows a changed CSV, and does not
// look at a Deployment's spec again once that was made (olm.md, fact 25).
//
// Until the release has succeeded, what runs is not what it will be. After that it
// is compared also while OLM installs it again.
func (d *decision) compare(in Input) {
	if !in.Cluster.Compared {
		d.Report.Drift = in.notCompared()
		return
	}
	if !in.runsTarget() && !in.hasSucceeded() {
		return
	}
	of := map[string][]string{}
	all := make([]string, 0, len(in.Cluster.Drifted))
	for _, f := range in.Cluster.Drifted {
		of[f.Kind] = append(of[f.Kind], f.String())
		all = append(all, f.String())
	}
	kind := KindCSV
	if len(of[KindCSV]) == 0 {
		kind = KindDeployment
	}
	d.Report.Drift = &engines.Drift{Fields: all}
	if in.isAsInstalled() {
		return // it is adopted as it is
	}
	d.Report.Drift.Correction, d.Report.Correction = engines.Correct(in.Install, of[kind], in.Now)
	switch d.Report.Drift.Correction {
	case engines.CorrectionDue:
		d.correct(in, kind)
	case engines.CorrectionWaits:
		d.recheck(d.Report.Correction.LastTime.Add(engines.CorrectionPause).Sub(in.Now))
	}
}

// correct plans to correct the objects of a kind that differ.
func (d *decision) correct(in Input, kind string) {
	objects := map[string]Object{}
	if csv, ok := in.Cluster.Installed(); ok && kind == KindCSV {
		objects[csv.Name] = csv.Object
	}
	for _, deployment := range in.Cluster.Deployments {
		if kind == KindDeployment {
			objects[deployment.Name] = deployment.Object
		}
	}
	for _, f := range in.Cluster.Drifted {
		if object, ok := objects[f.Name]; ok && f.Kind == kind {
			d.add(Correct, kind, f.Name, object)
			delete(objects, f.Name)
		}
	}
	d.recheck(recheckSoon)
}

// FieldsOf returns the fields that differ in an object.
func (c Cluster) FieldsOf(kind, name string) []drift.Field {
	var fields []drift.Field
	for _, f := range c.Drifted {
		if f.Kind == kind && f.Name == name {
			fields = append(fields, f)
		}
	}
	return fields
}

// notCompared says that it cannot be known whether what is installed differs from
// the bundle. It returns nil where the catalog cannot be read, which another condition
// tells of.
func (in Input) notCompared() *engines.Drift {
	o := in.Offer
	switch {
	case !in.runsTarget():
		return nil
	case o.Pending != "":
		return &engines.Drift{Later: true}
	case o.Problem != nil || o.Blocked != "" || o.Expected != nil:
		return nil
	}
	return &engines.Drift{Unknown: fmt.Sprintf("%s is not compared with the bundle, because the agent does not have "+
		"its manifests: OLM unpacks them from the bundle's image. Give the agent access to that image.",
		in.target())}
}
