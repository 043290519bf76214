/** The real kubectl, where this machine has one. */
import { execFileSync } from 'node:child_process'
import { skipWithout } from '../../test/support/missing-parts.ts'

/** For `test(name, { skip: whyNoKubectl() }, …)`. Throws where it is missing and no opt-out is set. */
export function whyNoKubectl(): string | false {
  return skipWithout('kubectl', hasKubectl())
}

function hasKubectl(): boolean {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
