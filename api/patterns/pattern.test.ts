import { test } from 'tap'
import { compilePattern } from './pattern.ts'

const matches = (pattern: string, text: string) => compilePattern(pattern).matches(text, { left: 1_000_000 })

test('patterns of schemas match as in Go, which means anywhere in the text', async (t) => {
  const cases: readonly (readonly [pattern: string, text: string, isMatch: boolean])[] = [
    ['b', 'abc', true],
    ['^b', 'abc', false],
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', 'my-name-1', true],
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', 'My-name', false],
    ['^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', 'name-', false],
    ['^(0|(([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?))$', '1h30m', true],
    ['^(0|(([0-9]+y)?([0-9]+h)?))$', '30m', false],
    ['(?i)^(debug|info)?$', 'INFO', true],
    ['(?i)^(debug|info)?$', 'infos', false],
    ['^(?i:a)b$', 'Ab', true],
    ['^(?i:a)b$', 'AB', false],
    ['a.c', 'a\nc', false],
    ['(?s)a.c', 'a\nc', true],
    ['(?m)^b$', 'a\nb\nc', true],
    ['^b$', 'a\nb\nc', false],
    ['^a{2,3}$', 'aaa', true],
    ['^a{2,3}$', 'aaaa', false],
    ['^a{2}$', 'aa', true],
    ['^a{2,}?$', 'aaaaa', true],
    ['^a{,2}$', 'a{,2}', true],
    ['^[^/]+/[^/]+$', 'a/b', true],
    ['^[]a]+$', ']a]', true],
    ['^[a-]+$', 'a-', true],
    ['^[\\w.-]+$', 'a_.-9', true],
    ['^[[:alpha:]_]+$', 'aZ_', true],
    ['^\\d+\\.\\d+$', '1.25', true],
    ['^\\S+$', 'a b', false],
    ['^\\pL+$', 'äöü', true],
    ['^\\p{Greek}+$', 'αβγ', true],
    ['^\\P{Lu}+$', 'aBc', false],
    ['^\\x41\\x{1F600}$', 'A😀', true],
    ['^.$', '😀', true],
    ['\\bfoo\\b', 'a foo b', true],
    ['\\bfoo\\b', 'afoo', false],
    ['^\\Qa.b\\E$', 'a.b', true],
    ['^\\Qa.b\\E$', 'axb', false],
    ['^(?P<name>a)(?:b|c)*$', 'abcbc', true],
    ['', 'anything', true],
    ['^$', '', true],
    ['^(a|)$', '', true],
    ['^(a*)*$', 'aaaa', true],
    ['^a\\/b$', 'a/b', true],
  ]
  for (const [pattern, text, isMatch] of cases) t.equal(matches(pattern, text), isMatch, `${pattern} ${text}`)
})

test('what is not a pattern of RE2 is refused in the words of Go', async (t) => {
  const wrong: readonly (readonly [pattern: string, problem: RegExp])[] = [
    ['(a', /missing closing \): `\(a`/],
    ['a)', /unexpected \)/],
    ['[a', /missing closing \]: `\[a`/],
    ['[z-a]', /invalid character class range: `z-a`/],
    ['*a', /missing argument to repetition operator: `\*`/],
    ['a**', /invalid nested repetition operator/],
    ['a{1001}', /invalid repeat count: `\{1001\}`/],
    ['a{3,2}', /invalid repeat count/],
    ['(?=a)', /invalid or unsupported Perl syntax: `\(\?=`/],
    ['(?!a)', /invalid or unsupported Perl syntax/],
    ['(a)\\1', /invalid escape sequence: `\\1`/],
    ['\\y', /invalid escape sequence: `\\y`/],
    ['a\\', /trailing backslash/],
    ['\\p{Nothing}', /invalid character class range/],
    ['(a{1000}){1000}', /expression too large/],
    ['(((){1000}){1000}){1000}', /expression too large/],
    [`${'('.repeat(2_000)}${')'.repeat(2_000)}`, /nests too deeply/],
    ['a'.repeat(20_000), /expression too large/],
  ]
  for (const [pattern, problem] of wrong) {
    t.throws(() => compilePattern(pattern), problem, pattern.slice(0, 40))
  }
})

test('a pattern that JavaScript matches in exponential time takes steps in proportion to the text', async (t) => {
  const stepsFor = (length: number) => {
    const steps = { left: 10_000_000 }
    t.equal(compilePattern('^(a+)+$').matches(`${'a'.repeat(length)}!`, steps), false)
    return 10_000_000 - steps.left
  }
  t.ok(stepsFor(4_000) < 2.1 * stepsFor(2_000))
})

test('a match ends when its steps are used up', async (t) => {
  t.equal(compilePattern('^(a|b|ab)*$').matches('ab'.repeat(5_000), { left: 1_000 }), undefined)
})

test('a pattern has no memory of the texts before', async (t) => {
  const pattern = compilePattern('^(a|bb)+$')
  const found = (text: string, left = 1_000) => pattern.matches(text, { left })
  const answers = [found('abb'), found('ab'), found('b'.repeat(100), 50), found('abb'), found(''), found('bba')]
  t.same(answers, [true, false, undefined, true, false, true])
})

test('a class costs steps for what it looks through', async (t) => {
  const many = Array.from({ length: 500 }, (_, n) => `\\x{${(0x1000 + 3 * n).toString(16)}}`).join('')
  const stepsFor = (pattern: string, text: string) => {
    const steps = { left: 1_000_000 }
    compilePattern(pattern).matches(text, steps)
    return 1_000_000 - steps.left
  }
  t.ok(stepsFor(`^[${many}]`, 'é') > 500)
  t.ok(stepsFor(`^(?i)[${many}]`, 'é') > 1_500)
  t.ok(stepsFor(`^[^${many}]*$`, 'a'.repeat(1_000)) < 10_000, 'once for each character below 128')
})

test('a search finds the first place, and there the match that Go prefers', async (t) => {
  const found = (pattern: string, text: string, from = 0) => {
    const place = compilePattern(pattern).search(text, from, { left: 10_000 })
    return place === undefined || place === 'none' ? place : [place.start, place.end]
  }
  t.same(found('a+', 'xaab'), [1, 3])
  t.same(found('a+?', 'xaab'), [1, 2])
  t.same(found('ab|abcd', 'abcd'), [0, 2])
  t.same(found('(a|ab)(c|bcd)', 'abcd'), [0, 4])
  t.same(found('a*', 'baa'), [0, 0])
  t.same(found('a', 'aba', 1), [2, 3])
  t.same(found('^a', 'aa', 1), 'none')
  t.same(found('\\bb', 'a b', 1), [2, 3])
  t.same(found('.b', '😀b', 0), [0, 3])
  t.equal(compilePattern('x*y').search('x'.repeat(1_000), 0, { left: 100 }), undefined)
})
