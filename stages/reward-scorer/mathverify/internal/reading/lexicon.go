package reading

import (
	"strings"
)

// wordClass is what is known of a word. A word that is not in the lexicon is
// unknown, and counts.
type wordClass uint8

const (
	unknownWord wordClass = iota
	// filler says nothing: "the answer is about". It never counts.
	Filler
	// noun is what is counted or named: "7 apples", "the area is 7". It counts
	// only against other nouns.
	noun
	// adjective is what a noun may have before it and a count behind it: "7 red
	// balls", "7 left".
	adjective
	// quantifier is free only in front of a noun: "7 more days", but not "7 more".
	quantifier
	// glue joins nouns: "bags of flour", "ways to arrange".
	Glue
	// verb follows "to" in glue: "7 ways to arrange them".
	verb
	// denial turns what is said round.
	Denial
)

// free says whether a word of this class may stand on one side only.
func (c wordClass) free() bool { return c >= Filler && c <= adjective || c == Glue || c == verb }

// lexicon is the list of words that are understood. Everything else counts as it
// is written.
var lexicon = func() map[string]wordClass {
	m := map[string]wordClass{}
	for _, part := range []struct {
		class wordClass
		words string
	}{
		{Denial, denials}, {Filler, fillers}, {quantifier, quantifiers}, {noun, namingNouns}, {noun, countedThings}, {noun, countedPeople}, {noun, countedFood},
		{noun, countedObjects}, {adjective, adjectives}, {Glue, glueWords}, {verb, verbs},
	} {
		for _, w := range strings.Fields(part.words) {
			if m[w] == unknownWord {
				m[w] = part.class
			}
		}
	}
	return m
}()

const (
	denials = `nobody noone not no never none neither nor isn't aren't doesn't don't can't cannot won't wasn't without except excluding but nothing anything
		wrong incorrect false untrue invalid impossible unlike`

	fillers = `the a an is are was were be been being it its it's this that these those there here we i you he she they
		get gets got have has had obtain obtains find finds found make makes made need needs take takes takes took earn earns pay pays cost costs
		gives give yields yield become becomes leave leaves remains stands comes so thus hence therefore then finally consequently
		thereby because also about approximately approx around roughly circa exactly precisely just only simply merely namely
		equal equals answer answers final correct required desired result results solution's called following obtained
		our my your his her their as will must do does did ok okay such exist exists both either`

	quantifiers = `more prime even odd real`

	adjectives = `red blue green yellow black white pink purple orange brown grey gray golden silver gold small large big little tiny huge tall short long old
		young new fresh whole full total altogether overall all distinct different possible ordered unordered positive integer integral rational
		consecutive additional extra other remaining left right over-all available unique separate identical equal-sized equilateral isosceles regular
		complete entire actual expected average mean initial original current combined ideal successful favorable favourable square round
		mixed whole-number complex natural simple proper improper common single individual adult female male middle first second third last next
		remaining inclusive apart away each apiece daily weekly monthly yearly annual hourly deep wide high thick linear digital cooked baked bought sold
		used unused free paid broken empty wooden plastic metal hot cold sweet dry wet clean dirty happy smallest largest greatest least
		shortest longest tallest maximum minimum maximal minimal highest lowest best worst fastest slowest nearest exact approximate wanted given`

	glueWords = `of by in on for with per and/or to at which who whose them us him me`

	verbs = `arrange choose select order form make pick place put seat color colour paint write express distribute divide split cover fill walk reach tile assign pay buy
		get go travel roll draw pair label list fold cut climb finish complete win lose eat read drive run build solve`

	namingNouns = `value values number numbers integer solution solutions root roots zero zeros sum difference product quotient remainder ratio proportion fraction fractions decimal
		percentage probability chance odds expectation variance deviation median mode range area volume perimeter circumference radius radii diameter length width
		height depth side sides angle angles slope intercept distance speed velocity acceleration rate time age price cost profit loss revenue income amount total sum
		mass weight temperature capacity density pressure power energy work force base exponent degree coefficient coefficients constant term terms factor factors divisor
		divisors multiple multiples digit digits prime primes perfect order orders rank dimension dimensions determinant trace eigenvalue eigenvalues norm limit integral derivative
		sequence sequences series function functions polynomial polynomials equation equations expression expressions variable variables point points vertex vertices edge edges face faces
		diagonal diagonals triangle triangles rectangle rectangles quadrilateral quadrilaterals polygon polygons circle circles sphere spheres cone cones cylinder cylinders
		cube cubes prism prisms pyramid pyramids line lines segment segments ray rays plane planes graph graphs curve curves matrix matrices vector vectors set sets subset subsets
		element elements member members pair pairs tuple tuples triple triples triplet triplets quadruple quadruples permutation permutations combination combinations arrangement arrangements
		way ways path paths route routes method methods outcome outcomes event events case cases possibility possibilities choice choices option options configuration configurations
		coloring colorings colouring colourings partition partitions count counts x-intercept y-intercept y-coordinate x-coordinate coordinate coordinates center centre midpoint
		intersection intersections interval intervals domain codomain period amplitude frequency phase step steps stage stages turn turns move moves time times
		unit units half-life dozen place places position positions row rows column columns layer layers level levels cell cells grid grids entry entries`

	countedThings = `day days week weeks month months year years hour hours minute minutes second seconds dollar dollars cent cents euro euros pound pounds penny pennies
		nickel nickels dime dimes coin coins bill bills note notes buck bucks degree degrees thing things item items object objects piece pieces part parts portion portions slice slices share shares section
		sections group groups class classes grade grades grader graders team teams batch batches bunch bunches bundle bundles pack packs packet packets package packages box boxes bag bags basket baskets bottle bottles
		can cans jar jars cup cups glass glasses bowl bowls plate plates tray trays bucket buckets tank tanks crate crates case carton cartons container containers barrel barrels stack stacks pile piles
		load loads trip trips lap laps round rounds game games match matches set point goal goals score scores hit hits win wins loss losses run runs point vote votes test tests exam exams
		quiz quizzes question questions problem problems task tasks lesson lessons course courses chapter chapters page pages word words letter letters line sentence sentences paragraph paragraphs
		book books story stories song songs movie movies episode episodes photo photos picture pictures video videos message messages call calls email emails file files post posts
		mile miles meter meters metre metres foot feet inch inches yard yards block blocks acre acres gallon gallons quart quarts pint pints ounce ounces gram grams
		ton tons tonne tonnes kilogram kilograms kilometer kilometers kilometre kilometres centimeter centimeters millimeter millimeters liter liters litre litres tablespoon tablespoons teaspoon teaspoons spoonful
		calorie calories watt watts volt volts percent color colors colour colours shape shapes size sizes type types kind kinds sort sorts model models version versions copy copies
		ticket tickets token tokens chip chips card cards die dice spinner roll rolls toss tosses flip flips draw draws throw throws jump jumps pushup pushups trial trials
		attempt attempts experiment experiments sample samples survey surveys city cities town towns country countries state states house houses room rooms door doors window windows floor floors
		wall walls tile tiles brick bricks square squares street streets road roads bridge bridges station stations stop stops school schools office offices shop shops store stores farm farms
		field fields park parks seat seats chair chairs table tables bed beds desk desks shelf shelves planet planets star stars island islands site sites location locations`

	countedPeople = `person people man men woman women boy boys girl girls child children kid kids baby babies adult adults student students pupil pupils teacher teachers friend friends
		guest guests visitor visitors customer customers client clients worker workers employee employees player players winner winners runner runners driver drivers passenger passengers
		rider riders soldier soldiers doctor doctors patient patients nurse nurses farmer farmers sister sisters brother brothers son sons daughter daughters parent parents cousin cousins
		sibling siblings twin twins neighbor neighbors neighbour neighbours senior seniors junior juniors freshman freshmen voter voters candidate candidates judge judges captain captains
		artist artists singer singers dancer dancers painter painters fan fans classmate classmates roommate roommates grandchild grandchildren nephew nephews niece coach coaches
		engineer engineers programmer programmers participant participants contestant contestants committee committees couple couples family families crowd human humans elf elves dwarf dwarves knight knights
		cat cats dog dogs puppy puppies kitten kittens bird birds fish fishes cow cows horse horses sheep goat goats pig pigs chicken chickens hen hens duck ducks goose geese rabbit rabbits
		hamster hamsters mouse mice rat rats frog frogs turtle turtles snake snakes spider spiders ant ants bee bees bug bugs insect insects butterfly butterflies lion lions tiger tigers bear bears
		elephant elephants monkey monkeys zebra zebras deer fox foxes wolf wolves whale whales dolphin dolphins shark sharks crab crabs snail snails animal animals pet pets leg legs
		head heads eye eyes ear ears hand hands finger fingers tooth teeth wing wings tail tails`

	countedFood = `apple apples banana bananas orange oranges pear pears peach peaches plum plums grape grapes cherry cherries berry berries strawberry strawberries blueberry blueberries
		lemon lemons lime limes melon melons watermelon watermelons mango mangoes mangos kiwi kiwis pineapple pineapples coconut coconuts fig figs date dates nut nuts walnut walnuts peanut peanuts almond almonds
		tomato tomatoes potato potatoes carrot carrots onion onions pepper peppers cucumber cucumbers pumpkin pumpkins corn bean beans pea peas egg eggs cookie cookies cake cakes cupcake cupcakes
		muffin muffins brownie brownies donut donuts doughnut doughnuts pie pies pizza pizzas sandwich sandwiches burger burgers hamburger hamburgers taco tacos pancake pancakes waffle waffles bagel bagels
		loaf loaves bread candy candies chocolate chocolates lollipop lollipops sweet sweets gumball gumballs jellybean jellybeans popsicle popsicles marshmallow marshmallows cracker crackers
		pretzel pretzels cheese sausage sausages steak steaks meal meals snack snacks lunch lunches dinner dinners drink drinks soda sodas juice juices milk water coffee tea sugar salt flour rice
		butter fruit fruits vegetable vegetables scoop scoops serving servings recipe recipes bite bites`

	countedObjects = `ball balls marble marbles toy toys doll dolls balloon balloons block kite kites puzzle puzzles bead beads button buttons ribbon ribbons ring rings necklace necklaces bracelet bracelets
		earring earrings jewel jewels gem gems pearl pearls pencil pencils pen pens crayon crayons marker markers eraser erasers ruler rulers notebook notebooks paper papers sheet sheets sticker stickers
		stamp stamps envelope envelopes bar bars stick sticks rod rods rope ropes string strings wire wires nail nails screw screws bolt bolts tool tools key keys lock locks light lights lamp lamps
		candle candles battery batteries bulb bulbs phone phones computer computers tablet tablets camera cameras clock clocks watch watches radio radios tv television televisions car cars truck trucks
		bus buses bike bikes bicycle bicycles motorcycle motorcycles train trains boat boats ship ships plane airplane airplanes wheel wheels tire tires shirt shirts pant pants sock socks shoe shoes hat hats
		coat coats jacket jackets dress dresses skirt skirts glove gloves scarf scarves tie ties suit suits flower flowers rose roses tulip tulips daisy daisies tree trees plant plants bush bushes leaf leaves seed seeds
		petal petals branch branches stone stones rock rocks shell shells seashell seashells cloud clouds present presents gift gifts prize prizes medal medals badge badges flag flags sign signs
		poster posters painting paintings drawing drawings instrument instruments guitar guitars piano pianos drum drums ladder ladders pole poles post brush brushes spoon spoons fork forks knife knives
		napkin napkins towel towels blanket blankets pillow pillows curtain curtains mirror mirrors vase vases pot pots pan pans oven ovens bench benches fence fences machine machines robot robots
		domino dominoes token pawn pawns rook rooks bishop bishops queen queens king kings chess piece dot dots node nodes bit bits byte bytes mask masks`
)

// ClassOf looks a word up, also in the singular.
func ClassOf(word string) wordClass {
	if c := lexicon[word]; c != unknownWord {
		return c
	}
	if s := singular(word); s != word {
		if c := lexicon[s]; c == noun {
			return c
		}
	}
	return unknownWord
}

// singular is the form that nouns are compared in.
func singular(w string) string {
	n := len(w)
	switch {
	case irregular[w] != "":
		return irregular[w]
	case n > 4 && strings.HasSuffix(w, "ies"):
		return w[:n-3] + "y"
	case n > 4 && (strings.HasSuffix(w, "xes") || strings.HasSuffix(w, "ches") || strings.HasSuffix(w, "shes") || strings.HasSuffix(w, "sses")):
		return w[:n-2]
	case n > 3 && w[n-1] == 's' && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		return w[:n-1]
	}
	return w
}

var irregular = map[string]string{
	"men": "man", "women": "woman", "children": "child", "people": "person", "feet": "foot", "teeth": "tooth", "mice": "mouse", "geese": "goose", "halves": "half",
	"leaves": "leaf", "loaves": "loaf", "knives": "knife", "shelves": "shelf", "vertices": "vertex", "matrices": "matrix", "radii": "radius", "dice": "die", "indices": "index",
	"axes": "axis", "bases": "base", "cases": "case", "roses": "rose", "houses": "house", "pieces": "piece",
}

// opposites are words of which one contradicts the other.
var opposites = func() map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Fields(`yes/no true/false even/odd increase/decrease increasing/decreasing increased/decreased gain/loss profit/loss up/down left/right north/south east/west above/below
		maximum/minimum max/min convergent/divergent converges/diverges converge/diverge inside/outside positive/negative before/after more/less more/fewer greater/less always/never
		open/closed finite/infinite rational/irrational acute/obtuse clockwise/counterclockwise upward/downward upwards/downwards larger/smaller highest/lowest most/least first/last
		win/lose buyer/seller injective/noninjective concave/convex vertical/horizontal parallel/perpendicular dependent/independent prime/composite success/failure`) {
		a, b, _ := strings.Cut(pair, "/")
		m[a], m[b] = b, a
	}
	return m
}()

// Opposed says whether two words cannot both hold.
func Opposed(a, b string) bool {
	return opposites[a] == b || opposites[b] == a
}

// operations are nouns that are free only in the plural: "7 roots" are counted,
// "7 root" may be one.
var operations = map[string]bool{"cube": true, "root": true, "power": true, "factor": true, "multiple": true, "divisor": true, "inverse": true, "exponent": true, "percent": true, "half": true, "double": true, "triple": true, "quadruple": true, "prime": true}

// Measures are nouns that may stand as "a total of 7": the number is theirs. In
// "a multiple of 7" it is not.
var Measures = func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`total value answer result area volume perimeter circumference radius diameter length width height depth distance speed velocity acceleration rate time age price cost
		profit loss revenue income amount mass weight temperature capacity density pressure probability chance ratio angle slope degree dimension average mean median mode range increase decrease gain rise fall drop number coefficient order`) {
		m[w] = true
	}
	return m
}()

// Generic nouns say only that something is counted: they agree with any other.
var Generic = map[string]bool{"unit": true, "total": true, "altogether": true, "remaining": true, "left": true, "item": true, "thing": true, "object": true, "value": true, "number": true, "amount": true}

// Kinds are nouns that an answer in words may have or lack: "even function".
var Kinds = map[string]bool{
	"function": true, "number": true, "integer": true, "sequence": true, "series": true, "graph": true, "curve": true, "triangle": true, "quadrilateral": true,
	"value": true, "answer": true, "option": true, "choice": true, "person": true, "matrix": true, "statement": true,
}

var months = map[string]bool{
	"january": true, "february": true, "march": true, "april": true, "may": true, "june": true, "july": true, "august": true, "september": true, "october": true, "november": true, "december": true,
}

var monthNames = map[string]string{"jan": "january", "feb": "february", "mar": "march", "apr": "april", "jun": "june", "jul": "july", "aug": "august", "sep": "september", "sept": "september", "oct": "october", "nov": "november", "dec": "december"}
