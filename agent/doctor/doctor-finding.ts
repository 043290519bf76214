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

/** What `--fix` does. A fix can be undone, is correct whenever it is offered, and changes nothing when it is applied again. */
export type Fix = {
  /** `Write /etc/…`: printed before it is applied. */
  readonly summary: string
  readonly steps: readonly FixStep[]
  /** The change takes effect at the next boot. The doctor never reboots the machine. */
  readonly needsRestart: boolean
}

/** Paths are those of the machine, whichever root folder is inspected. */
export type FixStep =
  | {
      readonly kind: 'write'
      readonly path: string
      readonly content: string
      readonly mode: number
      /** The content that the new content was derived from; undefined: no file. The step fails if the file differs. */
      readonly instead: string | undefined
      /** Where the present content is saved, unless that file exists already. */
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
