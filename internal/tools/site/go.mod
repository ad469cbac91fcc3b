module github.com/bellwether-dev/bellwether/internal/tools/site

go 1.26.3

require github.com/imfing/hextra v0.9.7 // indirect
