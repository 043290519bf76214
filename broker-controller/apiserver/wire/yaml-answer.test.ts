import { test } from 'tap'
import { parse } from 'yaml'
import { yamlPieces } from './yaml-answer.ts'

const written = (value: unknown) => [...yamlPieces(value)].join('')

test('an object is written in block style', async (t) => {
  const pod = {
    kind: 'Pod',
    metadata: { name: 'web', labels: {}, annotations: { on: 'yes', note: 'a: b' }, ownerReferences: [] },
    spec: { containers: [{ name: 'web', args: ['-c', 'echo hi\nsleep 1\n'], ports: [{ containerPort: 80 }] }] },
  }
  t.equal(
    written(pod),
    `kind: Pod
metadata:
  name: web
  labels: {}
  annotations:
    "on": "yes"
    note: "a: b"
  ownerReferences: []
spec:
  containers:
  - name: web
    args:
    - "-c"
    - |
      echo hi
      sleep 1
    ports:
    - containerPort: 80
`,
  )
})

test('what is written reads back the same, in YAML 1.1 and 1.2', async (t) => {
  const texts = [
    '',
    ' ',
    'a',
    'null',
    'NO',
    '1',
    '1e3',
    '0x1f',
    '.5',
    '-',
    '- a',
    '? a',
    '#',
    'a #b',
    'a: b',
    "it's",
    '"',
    '\\',
  ]
  const more = [
    'a\n',
    'a\nb',
    'a\n\n',
    '\n',
    ' a\nb',
    'a \nb',
    'a\n b\n',
    'a\n\nb\n\n',
    'a\r\nb',
    '\u0000',
    '\u2028',
    '\ufeff',
    'ü',
    '😀',
    '<<',
  ]
  const values = [
    ...texts,
    ...more,
    'a:b',
    '2026-11-22T00:00:00Z',
    'https://a.example/b',
    '~',
    '=',
    '[]',
    '{}',
    '*a',
    '&a',
    '!a',
    '%a',
    '@a',
  ]
  const value = {
    items: values.map((text) => ({ text, [text]: text })),
    nested: [[1, [true, null]], [], {}, [{}], [{ a: [{ b: [''] }] }]],
    numbers: [0, -1, 1.5, 1e21],
  }
  for (const version of ['1.1', '1.2'] as const) {
    t.same(parse(written(value), { version, uniqueKeys: false, merge: false }), value, version)
  }
  t.same(parse(written({ ['k:'.repeat(600)]: { a: 1 } })), { ['k:'.repeat(600)]: { a: 1 } }, 'a long key')
  for (const single of ['text', 'a\nb', 1, null, [], {}, ['a']]) t.same(parse(written(single)), single)
  t.same(parse(written({ a: undefined, b: 1 })), { b: 1 })
})

test('a long list comes in pieces', async (t) => {
  const items = Array.from({ length: 5000 }, (_, index) => ({ metadata: { name: `pod-${index}` }, index }))
  const list = { kind: 'PodList', items }
  const pieces = [...yamlPieces(list)]
  t.ok(pieces.length > 1, `${pieces.length} pieces`)
  t.same(parse(pieces.join('')), list)
})
