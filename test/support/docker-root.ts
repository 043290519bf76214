/** Docker of the testing release of Debian: `test/machines/build-docker-root.sh` makes the folder that has it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { commandOrThrow } from './machine-commands.ts'
import { isRoot, skipWithout } from './missing-parts.ts'

const script = fileURLToPath(new URL('../../../test/machines/build-docker-root.sh', import.meta.url))

/** For `test(name, { skip: whyNoDockerRoot() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoDockerRoot(): string | false {
  return skipWithout('root', isRoot()) || skipWithout('mmdebstrap', existsSync('/usr/bin/mmdebstrap'))
}

/** Its folder. The first call on a machine fetches it, which takes half a minute. Rejects with the output of the script. */
export async function newestDockerRoot(): Promise<string> {
  return (await commandOrThrow(script, [], { withinMs: 10 * 60_000 })).trim()
}
