// Copyright The Bellwether Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/bellwether-dev/bellwether/cmd/internal/kubeconfig"
	"github.com/bellwether-dev/bellwether/internal/untrusted/untrustedtest"
)

// admin is a kubeconfig as installers write it, with more in its cluster and its user.
func admin(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: prod
  cluster: {server: "https://api.prod.example.com:6443", certificate-authority-data: Y2E=%s}
users:
- name: admin
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5%s}
contexts:
- name: admin
  context: {cluster: prod, user: admin, namespace: other}
current-context: admin
`, cluster, user)
}

const second = "- name: unused\n  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, " +
	"interactiveMode: Never}}\n"

func TestCheck(t *testing.T) {
	server := func(url string) string {
		return strings.Replace(admin("", ""), "https://api.prod.example.com:6443", url, 1)
	}
	for name, test := range map[string]struct {
		text, want string
		refused    bool
	}{
		"certificates":          {text: admin("", "")},
		"a token":               {text: admin("", ", token: abc")},
		"a name for TLS":        {text: admin(", tls-server-name: api", "")},
		"exec":                  {admin("", ", exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}"), "exec would run", true},
		"auth-provider":         {admin("", ", auth-provider: {name: gcp}"), "auth-provider would run", true},
		"client-certificate":    {admin("", ", client-certificate: /etc/passwd"), "client-certificate would read", true},
		"client-key":            {admin("", ", client-key: /root/.ssh/id_rsa"), "client-key would read", true},
		"tokenFile":             {admin("", ", tokenFile: /var/run/secrets/token"), "tokenFile would read", true},
		"certificate-authority": {admin(", certificate-authority: ca.crt", ""), "certificate-authority would read", true},
		"proxy-url":             {admin(`, proxy-url: "socks5://203.0.113.1"`, ""), "proxy-url would send", true},
		"insecure":              {admin(", insecure-skip-tls-verify: true", ""), "insecure-skip-tls-verify", true},
		"an unused user runs a program": {strings.Replace(admin("", ""), "users:\n", "users:\n"+second, 1),
			`user "unused": exec would run`, true},
		"http":                {server("http://api.prod.example.com"), "https://HOST:PORT", true},
		"a password in a URL": {server("https://a:b@api.prod.example.com"), "https://HOST:PORT", true},
		"no host":             {server("https://"), "https://HOST:PORT", true},
		"no server":           {server(""), "https://HOST:PORT", true},
		"no context":          {text: strings.Replace(admin("", ""), "current-context: admin", "", 1), want: "no current context"},
		"a missing user":      {text: strings.Replace(admin("", ""), "user: admin,", "user: root,", 1), want: "is not in it"},
		"empty":               {text: "", want: "no current context"},
		"rubbish":             {text: "{token: secret", want: "it is no kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			checked, err := kubeconfig.Check([]byte(test.text))
			if test.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				isHarmless(t, checked)
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if errors.Is(err, kubeconfig.ErrRefused) != test.refused || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v: refused is %v", err, !test.refused)
			}
		})
	}
}

// isHarmless loads the checked text as any other program would.
func isHarmless(t *testing.T, checked []byte) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(checked)
	if err != nil {
		t.Fatalf("load what was checked: %v\n%s", err, checked)
	}
	tls := config.TLSClientConfig
	if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" ||
		config.Proxy != nil || tls.CAFile != "" || tls.CertFile != "" || tls.KeyFile != "" || tls.Insecure {
		t.Errorf("runs a program, reads a file, or does not verify: %s", checked)
	}
	if !strings.HasPrefix(strings.ToLower(config.Host), "https://") {
		t.Errorf("server %s", config.Host)
	}
	if again, err := kubeconfig.Check(checked); err != nil || string(again) != string(checked) {
		t.Errorf("checked again: %v\n%s", err, again)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(admin("", "")))
	f.Add([]byte(admin("", ", token: abc")))
	f.Add([]byte(admin("", ", exec: {command: sh}")))
	f.Add([]byte(admin("", ", tokenFile: /etc/passwd")))
	f.Add([]byte(admin(", certificate-authority: ca.crt", "")))
	f.Add([]byte(`{"kind":"Config","Users":[{"name":"a","user":{"Exec":{"command":"sh"}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		untrustedtest.Bound(t, len(text), 8<<20, 8<<10, func() {
			checked, err := kubeconfig.Check(text)
			if err != nil {
				return
			}
			loaded, err := clientcmd.Load(checked)
			if err != nil {
				t.Fatalf("load what was checked: %v", err)
			}
			for _, user := range loaded.AuthInfos {
				if user.Exec != nil || user.AuthProvider != nil || user.TokenFile != "" || user.ClientKey != "" ||
					user.ClientCertificate != "" {
					t.Fatalf("accepted %q as %s", text, checked)
				}
			}
			for _, cluster := range loaded.Clusters {
				if cluster.CertificateAuthority != "" || cluster.ProxyURL != "" || cluster.InsecureSkipTLSVerify ||
					!strings.HasPrefix(strings.ToLower(cluster.Server), "https://") {
					t.Fatalf("accepted %q as %s", text, checked)
				}
			}
		})
	})
}
