/** The version of this release. */

export const version = '0.1.0'

/** The Kubernetes release whose API the controller serves, and whose node behaviour the agent has. */
export const kubernetes = { major: '1', minor: '32', patch: '4' } as const

/** That release, and ours: what `kubectl version` and `kubectl get nodes` show. */
export const nodeVersion = `v${kubernetes.major}.${kubernetes.minor}.${kubernetes.patch}-bramble.${version}`

/** Our release in such a version: `v1.32.4-bramble.0.1.0` → `0.1.0`. Undefined: there is none in it. */
export function releaseIn(nodeVersion: string): string | undefined {
  return /-bramble\.(.+)$/.exec(nodeVersion)?.[1]
}
