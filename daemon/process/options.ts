/** What was typed after a command → its options, or why it is not understood. */

import { type ParseArgsConfig, parseArgs } from 'node:util'
import { messageOf } from '../errors.ts'

type ReadOptions<Config extends ParseArgsConfig> =
  | { readonly ok: true; readonly value: ReturnType<typeof parseArgs<Config>> }
  /** A sentence for who typed it. */
  | { readonly ok: false; readonly why: string }

/** As `parseArgs` of Node reads it, which throws a TypeError for what a person mistyped. */
export function readOptions<const Config extends Omit<ParseArgsConfig, 'args'>>(
  argv: readonly string[],
  config: Config,
): ReadOptions<Config> {
  try {
    return { ok: true, value: parseArgs<Config>({ ...config, args: [...argv] }) }
  } catch (error) {
    return { ok: false, why: messageOf(error) }
  }
}
