package v1alpha1

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// ChangesPrice says whether the overlay says anything of prices.
func (in *NodeOverlay) ChangesPrice() bool {
	return in.Spec.Price != nil || in.Spec.PriceAdjustment != nil
}

// AdjustedPrice is what a price becomes, in US dollars per hour and not below zero. A field that cannot be read changes
// nothing; Validate says so.
func (in *NodeOverlay) AdjustedPrice(price float64) float64 {
	change, err := in.priceChange()
	if err != nil || change == nil {
		return price
	}
	return max(0, change(price))
}

// priceChange reads price or priceAdjustment; nil where there is neither.
func (in *NodeOverlay) priceChange() (func(float64) float64, error) {
	switch {
	case in.Spec.Price != nil:
		fixed, err := amount(*in.Spec.Price)
		if err == nil && fixed < 0 {
			err = errors.New("must not be negative; priceAdjustment lowers a price")
		}
		return func(float64) float64 { return fixed }, err
	case in.Spec.PriceAdjustment == nil:
		return nil, nil
	}
	text, percent := strings.CutSuffix(*in.Spec.PriceAdjustment, "%")
	if !strings.HasPrefix(text, "+") && !strings.HasPrefix(text, "-") {
		return nil, errors.New("must begin with + or -, such as +0.5 or -10%")
	}
	by, err := amount(text)
	if percent {
		return func(price float64) float64 { return price * (1 + by/100) }, err
	}
	return func(price float64) float64 { return price + by }, err
}

// amount reads a finite number.
func amount(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(value, 0) || math.IsNaN(value) {
		return 0, errors.New("must be a number, such as 0.25")
	}
	return value, nil
}
