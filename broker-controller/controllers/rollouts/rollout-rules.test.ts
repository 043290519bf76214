import { test } from 'tap'
import { readRolloutRules, usualRules } from './rollout-rules.ts'

test('the usual rules can be read', async (t) => {
  t.same(readRolloutRules(JSON.parse(JSON.stringify(usualRules))), usualRules)
})

const ring = { name: 'one', count: 1, soakSeconds: 0 }
const refused: Readonly<Record<string, unknown>> = {
  'rings: more than 16': { ...usualRules, rings: Array.from({ length: 17 }, (_, at) => ({ ...ring, name: `r${at}` })) },
  'rings: the name one is taken twice': { ...usualRules, rings: [ring, ring] },
  'rings: the name rest is taken twice': { ...usualRules, rings: [{ ...ring, name: 'rest' }] },
  'rings[0].name: must be a DNS label': { ...usualRules, rings: [{ ...ring, name: 'Big' }] },
  'rings[0]: must have one of labels, count and percent': { ...usualRules, rings: [{ ...ring, percent: 1 }] },
  'rings[1]: must have one of labels, count and percent': {
    ...usualRules,
    rings: [ring, { name: 'two', soakSeconds: 1 }],
  },
  'rings[0].labels: must not be empty': { ...usualRules, rings: [{ name: 'one', labels: {}, soakSeconds: 0 }] },
  'rings[0].count: must be at least 1': { ...usualRules, rings: [{ ...ring, count: 0 }] },
  'rings[0].percent: must be from 1 to 100': { ...usualRules, rings: [{ name: 'one', percent: 101, soakSeconds: 0 }] },
  'rings[0].soakSeconds: must be from 0 to 31622400': { ...usualRules, rings: [{ ...ring, soakSeconds: -1 }] },
  'perLink: must be at least 1': { ...usualRules, perLink: 0 },
  'atOnce: must be at least 1': { ...usualRules, atOnce: -5 },
  'failureCount: must be at least 1': { ...usualRules, failureCount: 0 },
  'failurePercent: must be from 0 to 100': { ...usualRules, failurePercent: 101 },
  'stallSeconds: must be from 0 to 31622400': { ...usualRules, stallSeconds: 1e9 },
}
for (const [why, rules] of Object.entries(refused)) {
  test(`rules are refused: ${why}`, async (t) => {
    t.equal(readRolloutRules(rules), why)
  })
}

test('what is not a set of rules is refused with the fields that are wrong', async (t) => {
  t.match(readRolloutRules({ ...usualRules, rings: 'all' }), /^rings: /)
  t.type(readRolloutRules(undefined), 'string')
})
