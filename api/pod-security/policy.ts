/** The labels of a namespace → what Pod Security does there (PolicyToEvaluate in pod-security-admission/api/helpers.go). */
import { invalid, type Problem } from '../problem.ts'
import {
  isSameLevelVersion,
  type LevelVersion,
  latestVersion,
  levelForm,
  levelVersionText,
  parseLevel,
  parseVersion,
  strictness,
  versionForm,
} from './levels.ts'

export const securityModes = ['enforce', 'audit', 'warn'] as const
export type SecurityMode = (typeof securityModes)[number]

export type SecurityPolicy = { readonly [mode in SecurityMode]: LevelVersion }

type Labels = { readonly [key: string]: string }

/** Prefix of the labels of a namespace and of annotations in the audit log. */
export const podSecurityPrefix = 'pod-security.kubernetes.io/'

export const privilegedPolicy: SecurityPolicy = {
  enforce: { level: 'privileged', version: latestVersion },
  audit: { level: 'privileged', version: latestVersion },
  warn: { level: 'privileged', version: latestVersion },
}

/**
 * The policy of a namespace, and what is wrong with its labels. A level that cannot be read enforces `restricted` and neither audits nor
 * warns; a version that cannot be read is the latest.
 */
export function securityPolicyOf(
  labels: Labels = {},
  defaults: SecurityPolicy,
): { readonly policy: SecurityPolicy; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const read = (mode: SecurityMode): LevelVersion => {
    const [level, version] = [levelLabel(labels, mode), versionLabel(labels, mode)]
    const { [mode]: usual } = defaults
    const found = level === undefined ? usual.level : parseLevel(level)
    const since = version === undefined ? usual.version : parseVersion(version)
    if (found === undefined) problems.push(labelProblem(mode, level, levelForm))
    if (since === undefined) problems.push(labelProblem(`${mode}-version`, version, versionForm))
    const unreadable = mode === 'enforce' ? 'restricted' : 'privileged'
    return { level: found ?? unreadable, version: since ?? latestVersion }
  }
  const [enforce, audit, warn] = [read('enforce'), read('audit'), read('warn')]
  return { policy: { enforce, audit, warn: raisedWarn(labels, enforce, warn) }, problems }
}

/** A label that enforces more than is warned of warns of as much, unless a label sets that as well. */
function raisedWarn(labels: Labels, enforce: LevelVersion, warn: LevelVersion): LevelVersion {
  const isEnforced = parseLevel(levelLabel(labels, 'enforce') ?? '') !== undefined
  const isLower = strictness(enforce.level) > strictness(warn.level)
  if (levelLabel(labels, 'warn') !== undefined || !isEnforced || !isLower) return warn
  return { level: enforce.level, version: versionLabel(labels, 'warn') === undefined ? enforce.version : warn.version }
}

function levelLabel(labels: Labels, mode: SecurityMode): string | undefined {
  return labels[`${podSecurityPrefix}${mode}`]
}

function versionLabel(labels: Labels, mode: SecurityMode): string | undefined {
  return labels[`${podSecurityPrefix}${mode}-version`]
}

function labelProblem(name: string, value: unknown, form: string): Problem {
  return invalid(`metadata.labels[${podSecurityPrefix}${name}]`, value, form)
}

/** Whether nothing is refused, audited or warned of. */
export function isFullyPrivileged(policy: SecurityPolicy): boolean {
  return securityModes.every((mode) => policy[mode].level === 'privileged')
}

/** The part of an exempt namespace's policy that its labels set without effect; '' when there is none. */
export function ignoredPolicyText(labels: Labels = {}, policy: SecurityPolicy, defaults: SecurityPolicy): string {
  if (isFullyPrivileged(policy) || isEquivalent(policy, defaults)) return ''
  return securityModes
    .filter((mode) => {
      const isSet = levelLabel(labels, mode) !== undefined || versionLabel(labels, mode) !== undefined
      return policy[mode].level !== 'privileged' && isSet
    })
    .map((mode) => `${mode}=${levelVersionText(policy[mode])}`)
    .join(', ')
}

/** `privileged` is the same in each version. */
function isEquivalent(one: SecurityPolicy, other: SecurityPolicy): boolean {
  return securityModes.every((mode) => {
    const arePrivileged = one[mode].level === 'privileged' && other[mode].level === 'privileged'
    return arePrivileged || isSameLevelVersion(one[mode], other[mode])
  })
}
