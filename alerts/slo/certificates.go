// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	"github.com/bellwether-dev/bellwether/alerts/series"
)

// OLM creates the certificates of webhooks. It renews a certificate a day before the certificate expires,
// when it next processes the operator. Until then a certificate is in order, even if it expires soon.
const (
	// olmRenews is how many seconds before its end OLM renews a certificate.
	olmRenews = "86400"
	// olmOverdue is how many seconds after that time the renewal counts as overdue.
	olmOverdue = "7200"
)

// buildCertificateAlerts returns the alerts about certificates that expire: the certificates of verified chains
// that probes received, all certificates that a server sent if no chain was verified, and the certificates that OLM
// created for webhooks. The remaining validity is not a ratio of time, so certificates have no SLI and no budget.
func buildCertificateAlerts() []monitoringv1.Rule {
	each := installLabels + ", " + series.Probe
	// A server may send certificates that clients do not need, such as an expired cross-signed
	// root. If no chain is verified, blackbox_exporter reports the year 1 as the expiry.
	expiry := fmt.Sprintf("min by (%s) (last_over_time(%s[1h]) > 0 or last_over_time(%s[1h]))", each,
		series.ProbeSSLChainExpiry, series.ProbeSSLEarliestExpiry)
	rotation := aggregate("min", installLabels,
		fmt.Sprintf("last_over_time(%s[1h])", series.OperatorCertificateRotation))
	// A probe of a webhook receives the certificate that OLM created: its expiry differs by less than an hour.
	remaining := fmt.Sprintf("%s unless %s (abs(%s - %s group_left () (%s + %s)) < 3600)", expiry, matchOn(each),
		expiry, matchOn(installLabels), rotation, olmRenews)
	convertToDays := func(expiry string) string { return fmt.Sprintf("(%s - time()) / 86400", expiry) }
	overdue := fmt.Sprintf("%s and time() - (%s) > %s", convertToDays("("+rotation+" + "+olmRenews+")"), rotation,
		olmOverdue)
	newCertificateAlert := func(severity, condition string) monitoringv1.Rule {
		return newAlert(AlertCertificate, severity, series.ScopeOperator, addTeam(condition), map[string]string{
			"summary": "A certificate of " + operatorName + " on cluster {{ $labels.cluster }} " +
				"{{ if lt $value 0.0 }}has expired{{ else }}expires in {{ printf \"%.1f\" $value }} days{{ end }}",
			"description": "{{ with $labels.probe }}The endpoint of probe {{ . }} uses it. Renew it.{{ else }}The " +
				"operator's webhooks use it. OLM should have renewed it a day before it expires, and did not. Check " +
				"the log of olm-operator, and the condition of the ClusterServiceVersion.{{ end }}",
		})
	}
	return []monitoringv1.Rule{
		newCertificateAlert(series.Page, convertToDays("("+remaining+")")+" < 1\nor "+overdue),
		newCertificateAlert(series.Ticket, convertToDays("("+remaining+")")+" >= 1 < 14"),
	}
}
