/** The fix of the kernel's command line that enables the memory control group. */
import { type DoctorFinding, type Fix, warning } from './doctor-finding.ts'

/** `/boot/firmware/cmdline.txt`: one line with the kernel's parameters. */
export type CommandLineFile = { readonly path: string; readonly content: string; readonly mode: number }

const wanted = ['cgroup_enable=memory', 'cgroup_memory=1']

/** `found`: what the health check found. A fix is added where the path of the file is known. */
export function memoryCgroupFinding(found: DoctorFinding, file: CommandLineFile | undefined): DoctorFinding {
  if (found.verdict !== 'problem' || file === undefined) return found
  const content = withMemoryCgroup(file.content)
  if (content === undefined) return found
  if (content === file.content) {
    return warning(
      found.check,
      `Memory limits of pods have no effect yet: ${file.path} asks for them, but the kernel was started before that`,
      'Restart the machine. If that does not help, it boots with another file, or with a kernel that has no memory limits',
    )
  }
  return { ...found, fix: fixOf(file, content) }
}

function fixOf({ path, content: instead, mode }: CommandLineFile, content: string): Fix {
  const backup = `${path}.before-bramble`
  return {
    summary: `Make the line of ${path} ask for memory limits (${wanted.join(' ')}); the file as it is stays as ${backup}`,
    steps: [{ kind: 'write', path, content, mode, instead, backup }],
    needsRestart: true,
  }
}

/** Adds the parameters to the line. Undefined when the file has several lines: the firmware would read only the first. */
export function withMemoryCgroup(content: string): string | undefined {
  const line = content.trimEnd()
  const end = content.slice(line.length)
  if (line.trim() === '' || line.includes('\n')) return undefined
  const kept = line
    .trim()
    .split(/\s+/)
    .flatMap((word) => (word === 'cgroup_memory=0' ? [] : withoutMemory(word)))
  const missing = wanted.filter((word) => !kept.includes(word))
  const isSame = missing.length === 0 && kept.length === line.trim().split(/\s+/).length
  return isSame ? content : `${[...kept, ...missing].join(' ')}${end.includes('\n') ? '\n' : ''}`
}

/** `cgroup_disable=cpuset,memory` → `cgroup_disable=cpuset`. */
function withoutMemory(word: string): readonly string[] {
  const disabled = /^cgroup_disable=(.*)$/.exec(word)?.[1]?.split(',')
  if (disabled === undefined || !disabled.includes('memory')) return [word]
  const rest = disabled.filter((controller) => controller !== 'memory')
  return rest.length === 0 ? [] : [`cgroup_disable=${rest.join(',')}`]
}
