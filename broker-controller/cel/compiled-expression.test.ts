import { type Test, test } from 'tap'
import { dynType, intType, listType, mapType, objectType, stringType } from './checking/types.ts'
import { compileExpression } from './compiled-expression.ts'
import { estimatedCost } from './cost-estimate.ts'
import { valueText } from './functions/conversions.ts'
import { Machine, type Variables } from './machine.ts'
import { entriesByKey } from './values/equality.ts'
import { Meter } from './values/meter.ts'
import {
  ArrayList,
  CelFailure,
  type CelOutcome,
  Deferred,
  EntryMap,
  LazyObject,
  ListValue,
  MapValue,
  Optional,
} from './values/value.ts'

const none = new Map()
const exceeded = { message: 'operation cancelled: actual cost limit exceeded' }

/** The value of the expression as text, or its problem. */
function evaluated(source: string, types = none, variables: Variables = {}): string {
  const compiled = compileExpression(source, types)
  if (typeof compiled === 'string') return compiled
  const outcome = new Machine(compiled.program, variables, new Meter(1_000_000)).run(Number.POSITIVE_INFINITY) ?? null
  return outcome instanceof Deferred ? 'deferred' : shown(outcome)
}

function shown(value: CelOutcome): string {
  if (value === null) return 'null'
  if (value instanceof CelFailure) return `error: ${value.message}`
  if (value instanceof ListValue) {
    return `[${Array.from({ length: value.size }, (_, index) => shown(value.at(index))).join(', ')}]`
  }
  if (value instanceof MapValue)
    return `{${value
      .keys()
      .map((key) => `${shown(key)}: ${shown(value.get(key) ?? null)}`)
      .join(', ')}}`
  if (value instanceof Optional) return value.value === undefined ? 'none' : `of(${shown(value.value)})`
  return valueText(value) ?? 'opaque'
}

/** Sources and what they give. */
const isEach = (t: Test, cases: { readonly [source: string]: string }) => {
  for (const [source, wanted] of Object.entries(cases)) t.equal(evaluated(source), wanted, source)
}

test('operators calculate with integers of 64 bits, and refuse what has no result', async (t) => {
  isEach(t, {
    '1 + 2 * 3 - 4 / 2 % 3': '5',
    '-7 / 2': '-3',
    '-7 % 2': '-1',
    '9007199254740993 + 2': '9007199254740995',
    '9223372036854775807 + 1': 'error: integer overflow',
    '-9223372036854775808': '-9223372036854775808',
    '1 / 0': 'error: division by zero',
    '1 % 0': 'error: modulus by zero',
    '3u - 4u': 'error: unsigned integer overflow',
    '1.0 / 4.0': '0.25',
    '1 < 2.5 && 2u < 3': 'true',
    '9007199254740993 > 9007199254740992.0': 'false',
    '9007199254740993u > 9007199254740992': 'true',
    '0x1F == 31': 'true',
    '1e3': '1000',
    'string(1234567.0)': '1.234567e+06',
  })
})

test('a failure does not matter where the other operand decides', async (t) => {
  isEach(t, {
    '1 / 0 == 1 || true': 'true',
    'true || 1 / 0 == 1': 'true',
    '1 / 0 == 1 && false': 'false',
    '1 / 0 == 1 && true': 'error: division by zero',
    'true ? 1 : 1 / 0': '1',
    '[0, 1].exists(x, 1 / x == 1)': 'true',
    '[0, 2].all(x, 1 / x == 1)': 'false',
    '[1, 0].exists_one(x, 1 / x == 1)': 'error: division by zero',
  })
})

test('macros go through lists and maps', async (t) => {
  isEach(t, {
    '[1, 2, 3].all(x, x > 0)': 'true',
    '[1, 2, 3].exists_one(x, x > 2)': 'true',
    '[1, 2, 3].filter(x, x > 1)': '[2, 3]',
    '[1, 2, 3].map(x, x * 2)': '[2, 4, 6]',
    '[1, 2, 3].map(x, x > 1, x * 2)': '[4, 6]',
    '[[1, 2], [3]].map(x, x.map(y, y + 1))': '[[2, 3], [4]]',
    '{"a": 1, "b": 2}.exists(k, k == "b")': 'true',
    '[1, 2].all(i, v, v == i + 1)': 'true',
    '["a", "b"].transformMap(i, v, v + "x")': '{0: ax, 1: bx}',
    '{"a": 1}.transformList(k, v, k)': '[a]',
    '["a", "b"].transformMapEntry(i, v, {v: i})': '{a: 0, b: 1}',
    'has({"a": 1}.a) && !has({"a": 1}.b)': 'true',
    '[1, 2].map(x, [3].map(x, x))': '[[3], [3]]',
    '[1, 2].filter(x, x > 1).size() == 1': 'true',
  })
})

test('optional values are selected, listed and changed', async (t) => {
  isEach(t, {
    '{"a": {"b": 1}}.?a.?b.orValue(3)': '1',
    '{"a": 1}.?b': 'none',
    '{"a": 1}.?b.or(optional.of(2)).value()': '2',
    'optional.none().value()': 'error: optional.none() dereference',
    '[1][?0]': 'of(1)',
    '[1][?5]': 'none',
    '[?optional.of(1), ?optional.none()]': '[1]',
    '{?"a": optional.none(), "b": 2}': '{b: 2}',
    'optional.of(2).optMap(x, x + 1)': 'of(3)',
    'optional.of(2).optFlatMap(x, optional.none())': 'none',
    'optional.ofNonZeroValue("").hasValue()': 'false',
  })
})

test('texts are sequences of characters, of which some have two code units in JavaScript', async (t) => {
  isEach(t, {
    'size("😀a")': '2',
    '"😀a".charAt(1)': 'a',
    '"😀ab".indexOf("b")': '2',
    '"😀ab".substring(1, 2)': 'a',
    '"abc".substring(4)': 'error: index out of range: 4',
    '"a,b,c".split(",")': '[a, b, c]',
    '"a,b,c".split(",", 2)': '[a, b,c]',
    '"abc".split("")': '[a, b, c]',
    '["a", "b"].join("-")': 'a-b',
    '"hello".replace("l", "L", 1)': 'heLlo',
    '"ab".replace("", "-")': '-a-b-',
    '" a\\t".trim()': 'a',
    '"Ab".lowerAscii() + "Ab".upperAscii()': 'abAB',
    'strings.quote("a\\"\\n")': '"a\\"\\n"',
    '"abc".startsWith("ab") && "abc".endsWith("bc") && "abc".contains("b")': 'true',
    "'''a\n'b'''": "a\n'b",
    'r"\\d" == "\\\\d"': 'true',
    'b"\\xff".size()': '1',
    '"%d of %s: %.2f, %x, %s".format([1, ["a"], 2.5, 255, duration("1m")])': '1 of ["a"]: 2.50, ff, 60s',
    '"%f".format([2])': 'error: error during formatting: fixed-point clause can only be used on doubles, was given int',
  })
})

test('patterns are RE2, and find what Go finds', async (t) => {
  isEach(t, {
    '"abc".matches("^a.c$")': 'true',
    '"aab".find("a+")': 'aa',
    '"aab".find("a+?")': 'a',
    '"abcd".find("ab|abcd")': 'ab',
    '"xyz".find("a")': '',
    '"a1 b22".findAll("[0-9]+")': '[1, 22]',
    '"a1 b22".findAll("[a-z]", 1)': '[a]',
    '"abc".findAll("b*")': '[, b, ]',
    '"a".matches("(")': 'ERROR: <input>:1:13: invalid matches argument\n | "a".matches("(")\n | ............^',
  })
})

test('times and durations are those of Go', async (t) => {
  isEach(t, {
    'duration("1h30m").getMinutes()': '90',
    'duration("1.5s").getMilliseconds()': '1500',
    'duration("90m")': '5400s',
    'string(timestamp("2024-01-01T00:00:00.5+01:30"))': '2024-01-01T00:00:00.5+01:30',
    'timestamp("2024-02-29T23:00:00Z") + duration("2h")': '2024-03-01T01:00:00Z',
    'timestamp("2024-01-01T00:00:00Z").getHours("Europe/Vienna")': '1',
    'timestamp("2024-01-01T00:00:00Z").getDayOfYear("-01:00")': '364',
    'timestamp("2024-01-01T00:00:00Z") - timestamp("2023-12-31T00:00:00Z")': '86400s',
    'duration("1x")': 'ERROR: <input>:1:10: invalid duration argument\n | duration("1x")\n | .........^',
  })
})

test('the libraries of Kubernetes have addresses, ranges, quantities, URLs, lists and formats', async (t) => {
  isEach(t, {
    'isIP("10.0.0.1") && isIP("::1") && !isIP("10.0.0.01") && !isIP("::ffff:1.2.3.4")': 'true',
    'ip("fe80::1").isLinkLocalUnicast() && ip("127.0.0.1").isLoopback()': 'true',
    'ip("10.0.0.1").family()': '4',
    'ip.isCanonical("2001:DB8::1")': 'false',
    'cidr("10.0.0.0/8").containsIP("10.1.2.3") && !cidr("10.0.0.0/8").containsIP("11.0.0.1")': 'true',
    'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR("10.0.0.0/8")': 'true',
    'string(cidr("10.1.2.3/8").masked())': '10.0.0.0/8',
    'quantity("1Gi").isGreaterThan(quantity("1G"))': 'true',
    'quantity("500m").add(quantity("500m")).asInteger()': '1',
    'isQuantity("x")': 'false',
    'url("https://a.b:80/c?x=1&x=2").getQuery()': '{x: [1, 2]}',
    'url("https://[::1]:80/c").getHostname()': '::1',
    'isURL("a b")': 'false',
    '[1, 3, 2].max() + [1, 3, 2].min() + [1, 3, 2].sum()': '10',
    '[duration("1s")].filter(d, false).sum()': '0s',
    'type(ip("::1")) == net.IP': 'true',
    '[1, 2].isSorted() && [1, 2, 1].lastIndexOf(1) == 2': 'true',
    'sets.contains([1, 2], [1]) && sets.intersects([1], [1, 2]) && sets.equivalent([1, 1], [1])': 'true',
    'format.dns1123Label().validate("a-b")': 'none',
    'format.named("nothing").hasValue()': 'false',
    '!format.qualifiedName().validate("a/b/c").hasValue()': 'false',
  })
})

test('an expression that does not compile is refused with the place and the reason, as cel-go prints them', async (t) => {
  isEach(t, {
    '[] bad expression':
      "ERROR: <input>:1:4: Syntax error: extraneous input 'bad' expecting <EOF>\n | [] bad expression\n | ...^",
    'foo.bar': "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo.bar\n | ^",
    '"a" + 1':
      "ERROR: <input>:1:5: found no matching overload for '_+_' applied to '(string, int)'\n | \"a\" + 1\n | ....^",
    '[1, "a"]': "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, \"a\"]\n | ....^",
    '1.all(x, true)':
      "ERROR: <input>:1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)\n | 1.all(x, true)\n | ^",
  })
})

test('types come from what the variables are, and unknown ones are seen when it runs', async (t) => {
  const self = objectType(
    'selfType',
    new Map([
      ['name', stringType],
      ['ports', listType(intType)],
      ['any', dynType],
    ]),
  )
  const types = new Map([
    ['self', self],
    ['labels', mapType(stringType, stringType)],
    ['any', dynType],
  ])
  t.match(evaluated('self.nam', types), /undefined field 'nam'/)
  t.match(evaluated('self.name > 1', types), /found no matching overload for '_>_' applied to '\(string, int\)'/)
  t.match(evaluated('self.ports.all(p, p.x)', types), /type 'int' does not support field selection/)
  t.match(evaluated('self.ports.foo()', types), /undeclared reference to 'foo'/)
  const labels = new EntryMap(entriesByKey([['a', 'b']]) ?? new Map())
  t.equal(evaluated('labels["a"] + labels.a', types, { labels }), 'bb')
  t.equal(evaluated('labels.x', types, { labels }), 'error: no such key: x')
  t.equal(evaluated('any + 1', types, { any: 'a' }), 'error: no such overload')
  t.equal(evaluated('type(any) == string && any.matches("^[0-9]+%$")', types, { any: '5%' }), 'true')
})

test('an evaluation ends when it has cost what it may, and can be done in slices with the same result', async (t) => {
  const types = new Map([['list', listType(intType)]])
  const list = new ArrayList(Array.from({ length: 2_000 }, (_, index) => index))
  const nested = compileExpression('list.all(a, list.all(b, list.all(c, a + b + c >= 0)))', types)
  if (typeof nested === 'string') return t.fail(nested)
  const meter = new Meter(1_000_000)
  t.throws(() => new Machine(nested.program, { list }, meter).run(Number.POSITIVE_INFINITY), exceeded)
  const pairs = compileExpression('list.map(a, list.exists(b, b == a)).all(x, x)', types)
  if (typeof pairs === 'string') return t.fail(pairs)
  const few = new ArrayList([1, 2, 3, 4, 5, 6, 7, 8])
  const machine = new Machine(pairs.program, { list: few }, new Meter(1_000_000))
  let slices = 0
  let result: CelOutcome | Deferred | undefined
  while (result === undefined) {
    result = machine.run(50)
    slices += 1
  }
  t.equal(result, true)
  t.ok(slices > 5, `${slices} slices`)
})

test('a pattern that others need exponential time for costs little, and one on a long text ends', async (t) => {
  t.equal(evaluated(`"${'a'.repeat(5_000)}!".matches("^(a+)+$")`), 'false')
  const source = compileExpression('text.matches("(x*y*)*z")', new Map([['text', stringType]]))
  if (typeof source === 'string') return t.fail(source)
  const run = () =>
    new Machine(source.program, { text: 'xy'.repeat(500_000) }, new Meter(1_000_000)).run(Number.POSITIVE_INFINITY)
  t.throws(run, exceeded)
})

test('the estimate follows the sizes of the schema, as that of Kubernetes', async (t) => {
  const types = new Map([['self', listType(stringType)]])
  const estimate = (source: string, items: number, length: number) => {
    const compiled = compileExpression(source, types)
    if (typeof compiled === 'string') throw new Error(compiled)
    return estimatedCost(compiled.checked, (path) => (path.at(-1) === '@items' ? length : items)).max
  }
  // The range and the result; for each item 2 for the condition, 1 each for the accumulator, the item and the comparison.
  t.equal(estimate('self.all(x, x == "a")', 10, 100), 2 + 10 * 5)
  t.equal(estimate('self.all(x, x.contains("aaaaaaaaaaa"))', 10, 100), 2 + 10 * (4 + 10 * 2))
  t.ok(estimate('self.all(x, self.all(y, x == y))', 1_000, 100) > 10_000_000)
})

test('expressions of any depth and length are refused or read, without a stack that is too deep', async (t) => {
  t.match(evaluated(`${'('.repeat(5_000)}1${')'.repeat(5_000)}`), /recursion limit exceeded/)
  t.match(evaluated(`${'-'.repeat(1)}${'!'.repeat(10_000)}true`), /ERROR|true/)
  t.match(evaluated(Array.from({ length: 5_000 }, () => '1').join(' + ')), /recursion limit exceeded/)
  t.equal(evaluated(Array.from({ length: 5_000 }, () => 'true').join(' && ')), 'true')
  t.match(evaluated(`"${'a'.repeat(200_000)}"`), /exceeds limit/)
  t.match(evaluated('optional.of(1)'.concat('.optMap(x, x)'.repeat(100))), /of\(1\)|recursion/)
})

test('a machine stops at an outcome that comes from outside, and continues with it', async (t) => {
  class Asked extends LazyObject {
    readonly typeName = 'asked'
    names = () => ['a']
    deferred = (name: string) => (name === 'a' ? new Deferred(async () => 41) : undefined)
  }
  const types = new Map([['asked', objectType('asked', new Map([['a', intType]]))]])
  const started = (source: string) => {
    const compiled = compileExpression(source, types)
    if (typeof compiled === 'string') throw new Error(compiled)
    const machine = new Machine(compiled.program, { asked: new Asked() }, new Meter(1_000))
    return { machine, first: machine.run(1_000) }
  }
  const { machine, first } = started('asked.a + 1')
  if (!(first instanceof Deferred)) return t.fail('it is not deferred')
  t.equal(machine.run(1_000), first, 'it waits')
  machine.resume(await first.find())
  t.equal(machine.run(1_000), 42)
  const failing = started('asked.a == 1 || true')
  failing.machine.resume(new CelFailure('gone'))
  t.equal(failing.machine.run(1_000), true, 'a failure is one as any other')
  t.equal(started('has(asked.a)').first, true, 'whether it is there needs no value')
  const optional = started('asked.?a.orValue(0)')
  if (!(optional.first instanceof Deferred)) return t.fail('it is not deferred')
  optional.machine.resume(await optional.first.find())
  t.equal(optional.machine.run(1_000), 41)
})

test('a variable may have dots in its name, and a variable of a macro hides it', async (t) => {
  const types = new Map([
    ['a.b', intType],
    ['a', mapType(stringType, intType)],
  ])
  const a = new EntryMap(new Map([['"c', ['c', 3] as const]]))
  const variables = { 'a.b': 2, a }
  t.equal(evaluated('a.b', types, variables), '2')
  t.equal(evaluated('a.c', types, variables), '3')
  t.equal(evaluated('[{"b": 5}].map(a, a.b)[0]', types, variables), '5')
})
