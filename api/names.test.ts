import { test } from 'tap'
import {
  dataKeyProblem,
  dnsLabelProblem,
  dnsSubdomainProblem,
  environmentNameProblem,
  labelKeyProblem,
  labelValueProblem,
  pathSegmentProblem,
  portNameProblem,
} from './names.ts'

type Check = (text: string) => string | undefined
const cases: { name: string; check: Check; good: string[]; bad: string[] }[] = [
  {
    name: 'a label',
    check: dnsLabelProblem,
    good: ['a', 'web-1', '1'],
    bad: ['', 'A', '-a', 'a-', 'a.b', 'a'.repeat(64)],
  },
  {
    name: 'a subdomain',
    check: dnsSubdomainProblem,
    good: ['a.b', 'pi-01', 'x'.repeat(253)],
    bad: ['', 'a..b', '.a', 'a.', 'a_b', 'a.-b', 'x'.repeat(254), 'a\n'],
  },
  {
    name: 'a label key',
    check: labelKeyProblem,
    good: ['app', 'example.com/app', 'A_b.c'],
    bad: ['', '/app', 'a/b/c', 'a/', 'Ex/app', '-a', 'a'.repeat(64)],
  },
  { name: 'a label value', check: labelValueProblem, good: ['', 'a', 'A.b_c-1'], bad: ['-a', 'a b', 'a'.repeat(64)] },
  {
    name: 'a data key',
    check: dataKeyProblem,
    good: ['a.conf', '_x', '.a'],
    bad: ['', '.', '..', '..a', 'a/b'],
  },
  { name: 'an environment name', check: environmentNameProblem, good: ['PATH', 'a.b', '1 x'], bad: ['', 'a=b', 'é'] },
  {
    name: 'a port name',
    check: portNameProblem,
    good: ['http', 'p2p-80'],
    bad: ['', '80', 'Http', 'a--b', 'a'.repeat(16)],
  },
]

test('names are validated, and the problem is stated', async (t) => {
  for (const { name, check, good, bad } of cases) {
    for (const text of good) t.equal(check(text), undefined, `${name} may be ${JSON.stringify(text)}`)
    for (const text of bad) t.match(check(text), /must/, `${name} may not be ${JSON.stringify(text)}`)
  }
})

test('a name that is only a part of a path has no slash, no percent sign and no dots alone', async (t) => {
  for (const good of ['system:node:pi', 'A b', '...', '.a', 'x'.repeat(253)])
    t.equal(pathSegmentProblem(good), undefined)
  t.equal(pathSegmentProblem('.'), "must not be '.'")
  t.equal(pathSegmentProblem('..'), "must not be '..'")
  for (const bad of ['a/b', 'a%2f', 'x'.repeat(254)]) {
    t.equal(pathSegmentProblem(bad), "must be no longer than 253 characters, without '/' or '%'")
  }
})
