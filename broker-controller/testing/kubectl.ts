/** The real kubectl, where this machine has one. */
import { execFileSync } from 'node:child_process'

/** Why a test that types at kubectl cannot run here, or false: for `test(name, { skip: whyNoKubectl() }, …)`. */
export function whyNoKubectl(): string | false {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' })
    return false
  } catch {
    return 'kubectl is not installed here'
  }
}
