// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// OLM makes the certificates of webhooks, and renews them a day before they
// expire, when it next looks at the operator. Until then they are as they should
// be, however soon they expire.
const (
	// olmRenews is how long before its end OLM renews a certificate.
	olmRenews = "86400"
	// olmOverdue is how long after that OLM has not done what it should.
	olmOverdue = "7200"
)

// certificateAlerts are about certificates that expire: those of the verified chains that probes
// saw, all that a server sent where none was verified, and those that OLM made for webhooks. How
// long one is still valid is no ratio of time, and so there is no SLI and no budget for it.
func certificateAlerts() []monitoringv1.Rule {
	each := installLabels + ", " + series.Probe
	// A server may send certificates that clients do not need, such as a cross-signed root that has expired. Where no
	// chain is verified, blackbox_exporter says that it expires in the year 1.
	seen := fmt.Sprintf("min by (%s) (last_over_time(%s[1h]) > 0 or last_over_time(%s[1h]))", each,
		series.ProbeSSLChainExpiry, series.ProbeSSLEarliestExpiry)
	rotation := aggregate("min", installLabels,
		fmt.Sprintf("last_over_time(%s[1h])", series.OperatorCertificateRotation))
	// A probe of a webhook sees the certificate that OLM made.
	others := fmt.Sprintf("%s unless %s (abs(%s - %s group_left () (%s + %s)) < 3600)", seen, on(each), seen,
		on(installLabels), rotation, olmRenews)
	left := func(expiry string) string { return fmt.Sprintf("(%s - time()) / 86400", expiry) }
	overdue := fmt.Sprintf("%s and time() - (%s) > %s", left("("+rotation+" + "+olmRenews+")"), rotation, olmOverdue)
	about := func(severity, condition string) monitoringv1.Rule {
		return rule(AlertCertificate, severity, series.ScopeOperator, ofTeam(condition), map[string]string{
			"summary": "A certificate of " + nameOfOperator + " on cluster {{ $labels.cluster }} " +
				"{{ if lt $value 0.0 }}has expired{{ else }}expires in {{ printf \"%.1f\" $value }} days{{ end }}",
			"description": "{{ with $labels.probe }}The endpoint of probe {{ . }} uses it. Renew it.{{ else }}The " +
				"operator's webhooks use it. OLM should have renewed it a day before it expires, and did not. Check " +
				"the log of olm-operator, and the condition of the ClusterServiceVersion.{{ end }}",
		})
	}
	return []monitoringv1.Rule{
		about(series.Page, left("("+others+")")+" < 1\nor "+overdue),
		about(series.Ticket, left("("+others+")")+" >= 1 < 14"),
	}
}
