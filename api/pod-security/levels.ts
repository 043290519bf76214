/** Levels of the Pod Security Standards, and the versions of Kubernetes that they are pinned to (pod-security-admission/api/helpers.go). */

export const securityLevels = ['privileged', 'baseline', 'restricted'] as const
export type SecurityLevel = (typeof securityLevels)[number]

/** The minor version of Kubernetes 1; Infinity: `latest`. */
export type PolicyVersion = number
export const latestVersion: PolicyVersion = Number.POSITIVE_INFINITY

export type LevelVersion = { readonly level: SecurityLevel; readonly version: PolicyVersion }

/** What is wrong with a level or an invalid version. */
export const levelForm = `must be one of ${securityLevels.join(', ')}`
export const versionForm = 'must be "latest" or "v1.x"'

export function parseLevel(text: string): SecurityLevel | undefined {
  return securityLevels.find((level) => level === text)
}

export function parseVersion(text: string): PolicyVersion | undefined {
  if (text === 'latest') return latestVersion
  const minor = Number(/^v1\.(0|[1-9][0-9]*)$/.exec(text)?.[1])
  return Number.isSafeInteger(minor) ? minor : undefined
}

/** `restricted:latest`, `baseline:v1.28`. */
export function levelVersionText({ level, version }: LevelVersion): string {
  return `${level}:${versionText(version)}`
}

export function versionText(version: PolicyVersion): string {
  return version === latestVersion ? 'latest' : `v1.${version}`
}

/** How strict it is, to be compared. */
export function strictness(level: SecurityLevel): number {
  return securityLevels.indexOf(level)
}

export function isSameLevelVersion(one: LevelVersion, other: LevelVersion): boolean {
  return one.level === other.level && one.version === other.version
}
