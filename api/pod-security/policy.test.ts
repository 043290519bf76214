import { test } from 'tap'
import { problemText } from '../problem.ts'
import { levelVersionText } from './levels.ts'
import {
  ignoredPolicyText,
  isFullyPrivileged,
  privilegedPolicy,
  type SecurityPolicy,
  securityModes,
  securityPolicyOf,
} from './policy.ts'

const label = (name: string) => `pod-security.kubernetes.io/${name}`

/** `enforce audit warn`, and the problems. */
function read(labels: { readonly [name: string]: string }, defaults = privilegedPolicy) {
  const named = Object.fromEntries(Object.entries(labels).map(([name, value]) => [label(name), value]))
  const { policy, problems } = securityPolicyOf(named, defaults)
  return { text: textOf(policy), problems: problems.map(problemText) }
}

function textOf(policy: SecurityPolicy): string {
  return securityModes.map((mode) => levelVersionText(policy[mode])).join(' ')
}

test('a namespace has the policy of its labels, and the defaults where they leave it open', async (t) => {
  t.same(read({}), { text: 'privileged:latest privileged:latest privileged:latest', problems: [] })
  t.equal(
    read({ enforce: 'baseline', 'enforce-version': 'v1.28', audit: 'restricted', warn: 'restricted' }).text,
    'baseline:v1.28 restricted:latest restricted:latest',
  )
  const defaults = { ...privilegedPolicy, enforce: { level: 'baseline', version: 30 } } as const
  t.equal(read({}, defaults).text, 'baseline:v1.30 privileged:latest privileged:latest')
  t.equal(read({ enforce: 'privileged' }, defaults).text, 'privileged:v1.30 privileged:latest privileged:latest')
})

test('what a label enforces is warned of as well, unless a label sets that too', async (t) => {
  const warn = (labels: Parameters<typeof read>[0], defaults?: SecurityPolicy) =>
    read(labels, defaults).text.split(' ')[2]
  t.equal(warn({ enforce: 'restricted', 'enforce-version': 'v1.30' }), 'restricted:v1.30')
  t.equal(warn({ enforce: 'restricted', 'enforce-version': 'v1.30', 'warn-version': 'v1.29' }), 'restricted:v1.29')
  t.equal(warn({ enforce: 'restricted', warn: 'privileged' }), 'privileged:latest')
  const strict = { ...privilegedPolicy, warn: { level: 'restricted', version: 31 } } as const
  t.equal(warn({ enforce: 'baseline' }, strict), 'restricted:v1.31')
  const enforced = { ...privilegedPolicy, enforce: { level: 'restricted', version: 31 } } as const
  t.equal(warn({}, enforced), 'privileged:latest', 'a default of the controller is not a label')
})

test('a label that cannot be read enforces restricted, and neither audits nor warns', async (t) => {
  t.same(read({ enforce: 'strict', audit: 'x', warn: 'y', 'enforce-version': '1.32', 'audit-version': 'z' }), {
    text: 'restricted:latest privileged:latest privileged:latest',
    problems: [
      'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, baseline, restricted',
      'metadata.labels[pod-security.kubernetes.io/enforce-version]: Invalid value: "1.32": must be "latest" or "v1.x"',
      'metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: "x": must be one of privileged, baseline, restricted',
      'metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: "z": must be "latest" or "v1.x"',
      'metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "y": must be one of privileged, baseline, restricted',
    ],
  })
})

test('of an exempt namespace the part of the policy is named that its labels set in vain', async (t) => {
  const ignored = (labels: { readonly [name: string]: string }, defaults = privilegedPolicy) => {
    const named = Object.fromEntries(Object.entries(labels).map(([name, value]) => [label(name), value]))
    return ignoredPolicyText(named, securityPolicyOf(named, defaults).policy, defaults)
  }
  t.equal(ignored({}), '')
  t.equal(ignored({ enforce: 'privileged', 'enforce-version': 'v1.24', 'warn-version': 'v1.25' }), '')
  t.equal(ignored({ enforce: 'baseline' }), 'enforce=baseline:latest')
  t.equal(ignored({ audit: 'restricted', warn: 'baseline' }), 'audit=restricted:latest, warn=baseline:latest')
  const strict = { ...privilegedPolicy, enforce: { level: 'baseline', version: 30 } } as const
  t.equal(
    ignored({ enforce: 'baseline', 'enforce-version': 'v1.30', warn: 'privileged' }, strict),
    '',
    'as the defaults',
  )
  const versions = { enforce: 'baseline', 'enforce-version': 'v1.30', 'audit-version': 'v1.20', warn: 'privileged' }
  t.equal(ignored(versions, strict), '', 'privileged is the same in each version')
  t.equal(ignored({ 'enforce-version': 'v1.20', audit: 'privileged' }, strict), 'enforce=baseline:v1.20')
  t.equal(ignored({ ...versions, audit: 'restricted' }, strict), 'enforce=baseline:v1.30, audit=restricted:v1.20')
  t.ok(isFullyPrivileged(privilegedPolicy))
  t.notOk(isFullyPrivileged(strict))
})
