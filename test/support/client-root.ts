/** The Debian 13 with clients that this distribution has not: `test/clients/build-root.sh` makes it. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { commandOrThrow } from './machine-commands.ts'
import { isRoot, skipWithout } from './missing-parts.ts'

const script = fileURLToPath(new URL('../../../test/clients/build-root.sh', import.meta.url))

/** For `test(name, { skip: whyNoClientRoot() }, …)`. Throws where a part is missing without an opt-out. */
export function whyNoClientRoot(): string | false {
  return skipWithout('root', isRoot()) || skipWithout('mmdebstrap', existsSync('/usr/bin/mmdebstrap'))
}

/** Its folder. The first call on a machine builds it, which takes minutes. Rejects with the output of the script. */
export async function clientRoot(): Promise<string> {
  return (await commandOrThrow(script, [], { withinMs: 25 * 60_000 })).trim()
}
