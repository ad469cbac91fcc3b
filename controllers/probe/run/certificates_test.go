// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bellwether-dev/bellwether/alerts/probes"
	"github.com/bellwether-dev/bellwether/alerts/series"
	"github.com/bellwether-dev/bellwether/apis/v1alpha1"
)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// issue creates a certificate for a key that is valid for some days. The parent signs it;
// without a parent, it is self-signed.
func issue(t *testing.T, name string, days int, isCA bool, key *ecdsa.PrivateKey, parent *authority) *x509.Certificate {
	t.Helper()
	const day = 24 * time.Hour
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-365 * day), NotAfter: time.Now().Add(time.Duration(days) * day), IsCA: isCA,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	if !isCA {
		template.DNSNames, template.KeyUsage = []string{name}, x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	signer := authority{template, key}
	if parent != nil {
		signer = *parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.certificate, &key.PublicKey, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestCrossSignedCertificate probes a server that also sends a certificate which its verified chain does not need: the
// new root, signed by an old one that expires or has expired.
func TestCrossSignedCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		left       int // days of the certificate that is not needed
		unverified bool
	}{
		"expires":                  {left: 1},
		"has expired":              {left: -10},
		"expires, and unverified":  {left: 1, unverified: true},
		"has expired, unverified ": {left: -10, unverified: true},
	} {
		t.Run(name, func(t *testing.T) {
			rootKey, oldKey, middleKey, leafKey := newKey(t), newKey(t), newKey(t), newKey(t)
			root := &authority{issue(t, "New Root", 3650, true, rootKey, nil), rootKey}
			old := &authority{issue(t, "Old Root", tc.left, true, oldKey, nil), oldKey}
			cross := issue(t, "New Root", tc.left, true, rootKey, old)
			middle := &authority{issue(t, "Intermediate", 1000, true, middleKey, root), middleKey}
			leaf := issue(t, "app.example", 60, false, leafKey, middle)
			server := httptest.NewUnstartedServer(hostileHandler())
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{PrivateKey: leafKey,
				Certificate: [][]byte{leaf.Raw, middle.certificate.Raw, cross.Raw}}}}
			server.StartTLS()
			t.Cleanup(server.Close)
			url := "https://app.example" + server.URL[strings.LastIndex(server.URL, ":"):] + "/ok"
			trusted := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.certificate.Raw}))
			spec := with(specFor(url), func(s *v1alpha1.EndpointProbeSpec) {
				s.TLS = &v1alpha1.ProbeTLS{CA: trusted, InsecureSkipVerify: tc.unverified}
			})
			out := runProbe(t, names{"app.example": "127.0.0.1"}, spec, probes.Target{})
			checkResult(t, out, "", "")
			if first, _ := out.value(series.ProbeSSLEarliestExpiry, ""); first != float64(cross.NotAfter.Unix()) {
				t.Errorf("the first certificate expires at %f, want %d", first, cross.NotAfter.Unix())
			}
			chain, found := out.value(series.ProbeSSLChainExpiry, "")
			if want := float64(leaf.NotAfter.Unix()); found == tc.unverified || found && chain != want {
				t.Errorf("the chain expires at %f (%t), want %f (%t)", chain, found, want, !tc.unverified)
			}
		})
	}
}
