/** Several versions of kubectl: `test/clients/fetch-kubectl.sh` finds or fetches them. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { commandOrThrow } from './machine-commands.ts'

const script = fileURLToPath(new URL('../../../test/clients/fetch-kubectl.sh', import.meta.url))

export type KubectlVersion = {
  /** `1.29` */
  readonly minor: string
  /** Path of the program. */
  readonly program: string
}

/** For `test(name, { skip: whyNoKubectlVersions() }, …)`. */
export function whyNoKubectlVersions(): string | false {
  return process.arch === 'x64'
    ? false
    : `the packages that contain kubectl are for x86-64, and this machine is ${process.arch}`
}

/** Oldest first. The first call on a machine may fetch them, which takes minutes. Rejects with the output of the script. */
export async function kubectlVersions(): Promise<readonly KubectlVersion[]> {
  const programs = (await commandOrThrow(script, [], { withinMs: 25 * 60_000 })).trim().split('\n')
  return Promise.all(
    programs.map(async (program) => {
      const { stdout } = await promisify(execFile)(program, ['version', '--client'])
      const minor = /^Client Version: v(1\.\d+)/.exec(stdout)?.[1]
      if (minor === undefined) throw new Error(`${program} is not kubectl: ${stdout}`)
      return { minor, program }
    }),
  )
}
