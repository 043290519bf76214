/** The result of one check: what was found, its remedy, and a fix that can be applied now. */

/** `unknown`: it could not be checked, or this machine has no source for it. */
export type Verdict = 'ok' | 'warning' | 'problem' | 'unknown'

export type DoctorFinding = {
  /** `memory-cgroup` */
  readonly check: string
  readonly verdict: Verdict
  /** Sentences, without the last full stop. */
  readonly found: string
  readonly remedy?: string
  readonly fix?: Fix
}

/** What `--fix` does. Safe: it can be undone, is right whenever it is offered, and does nothing when done again. */
export type Fix = {
  /** `Write /etc/…`: printed before it is applied. */
  readonly summary: string
  readonly steps: readonly FixStep[]
  /** Nothing changes before the machine is restarted, which is left to a person. */
  readonly needsRestart: boolean
}

/** Paths are those of the machine, whatever folder it is looked at in. */
export type FixStep =
  | {
      readonly kind: 'write'
      readonly path: string
      readonly content: string
      readonly mode: number
      /** What is there now, which the content was made of; undefined: nothing. Anything else is left alone. */
      readonly instead: string | undefined
      /** Where what is there now is kept, unless something is kept there already. */
      readonly backup?: string
    }
  | { readonly kind: 'mode'; readonly path: string; readonly mode: number }
  /** systemd-logind reads its files again. */
  | { readonly kind: 'reload-logind' }

type More = { readonly remedy?: string; readonly fix?: Fix }

export function ok(check: string, found: string): DoctorFinding {
  return { check, verdict: 'ok', found }
}

export function warning(check: string, found: string, remedy: string, more: More = {}): DoctorFinding {
  return { check, verdict: 'warning', found, remedy, ...more }
}

export function problem(check: string, found: string, remedy: string, more: More = {}): DoctorFinding {
  return { check, verdict: 'problem', found, remedy, ...more }
}

export function unknown(check: string, found: string, remedy?: string): DoctorFinding {
  return { check, verdict: 'unknown', found, ...(remedy === undefined ? {} : { remedy }) }
}
