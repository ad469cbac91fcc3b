module github.com/bellwether-dev/bellwether/boilerplate/site

go 1.26.3

require github.com/imfing/hextra v0.9.7 // indirect
