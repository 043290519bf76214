import { test } from 'tap'
import { invalid, invalidObject, notSupported } from './problem.ts'

const pods = { kind: 'Pod', group: '' }

test('a refusal names the first hundred problems and how many more there are, each at a bounded length', async (t) => {
  const long = 'x'.repeat(100_000)
  const problems = Array.from({ length: 5_000 }, () => invalid(`data[${long}]`, long, long))
  const { message, details } = invalidObject(pods, long, problems)
  t.equal(details?.causes?.length, 100)
  t.match(message, /and 4900 more\]$/)
  t.ok(JSON.stringify({ message, details }).length < 200_000)
})

test('values are quoted as JSON, whatever they are, and cut', async (t) => {
  t.equal(invalid('a', 'b"', 'no').message, 'Invalid value: "b\\"": no')
  t.equal(invalid('a', undefined, 'no').message, 'Invalid value: undefined: no')
  t.ok(notSupported('a', 'x'.repeat(1000), ['b']).message.length < 200)
  t.ok(invalid('a', { list: Array(1000).fill(1) }, 'no').message.length < 200)
  t.equal(
    invalid('a', { b: [1, null], c: { d: true } }, 'no').message,
    'Invalid value: {"b":[1,null],"c":{"d":true}}: no',
  )
  t.equal(
    invalid('a', { ['k'.repeat(121)]: 'x'.repeat(1_000_000) }, 'no').message.length,
    'Invalid value: : no'.length + 120,
  )
  const deep = JSON.parse('['.repeat(400_000) + ']'.repeat(400_000))
  t.equal(invalid('a', deep, 'no').message, `Invalid value: ${'['.repeat(16)}...${']'.repeat(16)}: no`)
})
