/** Doubles of apt-get, dpkg, sync and sleep for tests of scripts: they log their words, and do what files in the folder ask for. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface FakeApt {
  /** First on the PATH of a script, before the programs of the machine. */
  readonly path: string
  /** What the next simulation prints. */
  pending(...lines: readonly string[]): void
  /** After `first` calls of apt-get with this word the next `times` fail with this error. */
  fail(word: 'update' | 'install' | 'upgrade', error: string, times?: number, first?: number): void
  /** Calls of all doubles since the start, a line each. */
  log(): readonly string[]
}

const aptGet = `#!/bin/sh
echo apt-get "$@" >>"$0.log"
for word in update install upgrade; do
  case " $* " in *" $word "*) ;; *) continue ;; esac
  first=$(cat "$0.$word.first" 2>/dev/null || echo 0)
  if [ "$first" -gt 0 ]; then
    echo $((first - 1)) >"$0.$word.first"
    continue
  fi
  left=$(cat "$0.$word.times" 2>/dev/null || echo 0)
  if [ "$left" -gt 0 ]; then
    echo $((left - 1)) >"$0.$word.times"
    cat "$0.$word.error"
    exit 100
  fi
done
case " $* " in
  *" -s "*) cat "$0.pending" ;;
  *" install "*) : >"$0.pending" ;;
esac
`
const logged = (name: string) => `#!/bin/sh\necho ${name} "$@" >>"$(dirname "$0")/apt-get.log"\n`

export function fakeApt(folder: string): FakeApt {
  mkdirSync(folder, { recursive: true })
  const apt = join(folder, 'apt-get')
  writeFileSync(apt, aptGet, { mode: 0o755 })
  for (const name of ['dpkg', 'sleep']) writeFileSync(join(folder, name), logged(name), { mode: 0o755 })
  writeFileSync(join(folder, 'sync'), '#!/bin/sh\n', { mode: 0o755 })
  writeFileSync(`${apt}.pending`, '')
  return {
    path: folder,
    pending: (...lines) => writeFileSync(`${apt}.pending`, lines.map((line) => `${line}\n`).join('')),
    fail(word, error, times = 1, first = 0) {
      const printed = 'Reading package lists...\nSetting up libblockdev-utils2 (2.28-2) ...'
      writeFileSync(`${apt}.${word}.error`, `${printed}\nE: ${error}\n`)
      writeFileSync(`${apt}.${word}.first`, String(first))
      writeFileSync(`${apt}.${word}.times`, String(times))
    },
    log: () => (existsSync(`${apt}.log`) ? readFileSync(`${apt}.log`, 'utf8').trim().split('\n') : []),
  }
}
