// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"github.com/bellwether-dev/bellwether/engines"
)

// reportDrift reports how the installed objects differ from the bundle, and plans to correct them if the
// install's drift policy requires it. The CSV is corrected first, because OLM makes the Deployments from it. OLM
// itself corrects neither: it follows a changed CSV, and does not check the spec of an existing Deployment
// (olm.md, fact 25).
//
// Before the release has succeeded, differences are not reported, because the objects are not complete. After the first
// success they are always reported, even while OLM installs the release again.
func (d *decision) reportDrift(in Input) {
	if !in.Cluster.Compared {
		d.Report.Drift = in.explainNotCompared()
		return
	}
	if !in.isTargetRunning() && !in.hasSucceeded() {
		return
	}
	fieldsByKind := map[string][]string{}
	all := make([]string, 0, len(in.Cluster.Drifted))
	for _, f := range in.Cluster.Drifted {
		fieldsByKind[f.Kind] = append(fieldsByKind[f.Kind], f.String())
		all = append(all, f.String())
	}
	kind := KindCSV
	if len(fieldsByKind[KindCSV]) == 0 {
		kind = KindDeployment
	}
	d.Report.Drift = &engines.Drift{Fields: all}
	if in.isAsInstalled() {
		return // a release that only adopts an operator changes nothing
	}
	d.Report.Drift.Correction, d.Report.Correction = engines.Correct(in.Install, fieldsByKind[kind], in.Now)
	switch d.Report.Drift.Correction {
	case engines.CorrectionDue:
		d.planCorrection(in, kind)
	case engines.CorrectionWaits:
		d.scheduleRecheck(d.Report.Correction.LastTime.Add(engines.CorrectionPause).Sub(in.Now))
	}
}

// planCorrection plans to correct the differing objects of a kind, each object once for all its fields.
func (d *decision) planCorrection(in Input, kind string) {
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
			delete(objects, f.Name) // one action corrects all fields of the object
		}
	}
	d.scheduleRecheck(recheckSoon)
}

// FieldsOf returns the differing fields of an object.
func (c Cluster) FieldsOf(kind, name string) []DriftField {
	var fields []DriftField
	for _, f := range c.Drifted {
		if f.Kind == kind && f.Name == name {
			fields = append(fields, f)
		}
	}
	return fields
}

// explainNotCompared returns why the installed objects were not compared with the bundle. It returns nil until the
// target runs, and if the catalog cannot be used, because another condition reports that.
func (in Input) explainNotCompared() *engines.Drift {
	o := in.Offer
	switch {
	case !in.isTargetRunning():
		return nil
	case o.Pending != "":
		return &engines.Drift{Pending: true}
	case o.Problem != nil || o.Blocked != "" || o.Expected != nil:
		return nil
	}
	return &engines.Drift{Unknown: fmt.Sprintf("%s is not compared with the bundle, because the agent does not have "+
		"its manifests: OLM unpacks them from the bundle's image. Give the agent access to that image.",
		in.findTarget())}
}
