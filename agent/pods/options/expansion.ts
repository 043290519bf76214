/** `$(NAME)` in commands and values, by Kubernetes' rule. */

/**
 * `$(NAME)` becomes NAME's value, or stays as it is when there is none; `$$` becomes `$`, so `$$(NAME)` is `$(NAME)`.
 */
export function expand(text: string, values: ReadonlyMap<string, string>): string {
  return text.replace(/\$(\$|\(([^)]*)\))/g, (whole, after: string, name: string | undefined) => {
    if (after === '$') return '$'
    return values.get(name ?? '') ?? whole
  })
}
