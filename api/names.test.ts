import { test } from 'tap'
import {
  dataKeyProblem,
  dns1035LabelProblem,
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
    good: ['a', 'web-1', '1', 'a'.repeat(63)],
    bad: ['', 'A', '-a', 'a-', 'a.b', 'a'.repeat(64)],
  },
  {
    name: 'the name of a Service',
    check: dns1035LabelProblem,
    good: ['a', 'a1', 'web-1', 'my-long-name', 'a'.repeat(63)],
    bad: ['', '1', '1a', 'A', '-a', 'a-', 'a.b', 'a\n', 'a_b', 'a'.repeat(64)],
  },
  {
    name: 'a subdomain',
    check: dnsSubdomainProblem,
    good: ['a.b', 'pi-01', 'my-pi.my-long-zone', 'x'.repeat(253)],
    bad: ['', 'a..b', '.a', 'a.', 'a_b', 'a.-b', 'x'.repeat(254), 'a\n'],
  },
  {
    name: 'a label key',
    check: labelKeyProblem,
    good: ['app', 'example.com/app', 'A_b.c', 'a'.repeat(63)],
    bad: ['', '/app', 'a/b/c', 'a/', 'Ex/app', '-a', 'a'.repeat(64)],
  },
  {
    name: 'a label value',
    check: labelValueProblem,
    good: ['', 'a', 'A.b_c-1', 'a'.repeat(63)],
    bad: ['-a', 'a b', 'a'.repeat(64)],
  },
  {
    name: 'a data key',
    check: dataKeyProblem,
    good: ['a.conf', '_x', '.a', 'a'.repeat(253)],
    bad: ['', '.', '..', '..a', 'a/b', 'a'.repeat(254)],
  },
  { name: 'an environment name', check: environmentNameProblem, good: ['PATH', 'a.b', '1 x'], bad: ['', 'a=b', 'é'] },
  {
    name: 'a port name',
    check: portNameProblem,
    good: ['http', 'p2p-80', 'p', 'a'.repeat(15)],
    bad: ['', '80', 'Http', 'a--b', 'a-', '-a', 'a_b', 'a'.repeat(16)],
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

test('the problem names the part and its limit', async (t) => {
  t.equal(labelKeyProblem('/app'), 'prefix part must not be empty')
  t.equal(labelKeyProblem(`${'x'.repeat(254)}/app`), 'prefix part must be no more than 253 characters')
  t.equal(labelKeyProblem('a/'), 'name part must not be empty')
  t.equal(labelKeyProblem('a'.repeat(64)), 'name part must be no more than 63 characters')
  t.match(labelKeyProblem('a/b/c'), /^must be a name, or a prefix and a name/)
  t.equal(environmentNameProblem(''), 'must not be empty')
  t.equal(dns1035LabelProblem('a'.repeat(64)), 'must be no more than 63 characters')
  t.match(dns1035LabelProblem('1a'), /^a DNS-1035 label must consist of lower case alphanumeric characters or '-'/)
  t.equal(dataKeyProblem('a'.repeat(254)), 'must be no more than 253 characters')
})
