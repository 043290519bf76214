/** The file with the last boots and the held pods: one line of keywords each, so that a torn write damages one line. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../../daemon/durable-file.ts'
import type { BootNote } from '../../health/boot-loop.ts'
import type { BootFile } from '../../health/boot-record.ts'
import type { BootHistory, HeldPod } from '../../health/boot-state.ts'

export function bootFilePath(dataDirectory: string): string {
  return join(dataDirectory, 'boot-id')
}

export function bootFile(dataDirectory: string): BootFile {
  const path = bootFilePath(dataDirectory)
  return {
    read: async () => parseBootFile(await readFile(path, 'utf8').catch(() => '')),
    save: (history) => replaceFile(path, bootFileText(history)),
  }
}

/** A line for each boot, the newest first: its id and its notes. Unknown keywords of later agents are ignored. */
export function parseBootFile(text: string): BootHistory {
  const lines = text.split('\n').flatMap((line) => (/^[\w-]+( [\w=.:/-]+)*$/.test(line) ? [line.split(' ')] : []))
  const held = lines.flatMap(([first, ...words]) => (first === 'held' ? words.map(heldPod) : []))
  const boots = lines.flatMap(([bootID = '', ...words]): BootNote[] => {
    if (bootID === 'held') return []
    const wordOf = (name: string) => words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1)
    const [last, trial, ran] = [wordOf('last'), wordOf('trial'), wordOf('ran')]
    return [
      {
        bootID,
        ...(words.includes('lasted') && { lasted: true }),
        ...(words.includes('ended') && { ended: true }),
        ...(last && { last }),
        ...(trial && { trial }),
        ...(words.includes('began') && { began: true }),
        ...(words.includes('controlled') && { controlled: true }),
        ...(/^\d{1,3}$/.test(ran ?? '') && { ran: Number(ran) }),
      },
    ]
  })
  return { boots, held }
}

function bootFileText({ boots, held }: BootHistory): string {
  const lines = boots.map(({ bootID, lasted, ended, last, trial, began, controlled, ran }) =>
    [
      bootID,
      ...(lasted ? ['lasted'] : []),
      ...(ended ? ['ended'] : []),
      ...(last === undefined ? [] : [`last=${last}`]),
      ...(trial === undefined ? [] : [`trial=${trial}`]),
      ...(began ? ['began'] : []),
      ...(controlled ? ['controlled'] : []),
      ...(ran === undefined ? [] : [`ran=${ran}`]),
    ].join(' '),
  )
  const words = held.map(({ uid, pod }) => `${uid}=${pod}`)
  return `${[...lines, ...(words.length === 0 ? [] : [`held ${words.join(' ')}`])].join('\n')}\n`
}

function heldPod(word: string): HeldPod {
  const [uid = '', pod = uid] = word.split('=', 2)
  return { uid, pod }
}
