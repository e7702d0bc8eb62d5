// ending MODE: one of those in modes.cc. ending SHARED_OBJECT: opens and closes
// it thrice, with all of the library used in between.

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

extern "C" int run_mode(const char* mode);

namespace {

int open_and_close(const char* path) {
  for (int i = 0; i < 3; ++i) {
    void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
      std::puts(dlerror());
      return 1;
    }
    const auto run =
        reinterpret_cast<int (*)(const char*)>(dlsym(opened, "run_mode"));
    if (run == nullptr || run("everything") != 0) return 1;
    dlclose(opened);
    if (dlopen(path, RTLD_NOW | RTLD_NOLOAD) != nullptr) {
      std::puts("it is still there");
      return 1;
    }
    // What the library asked fork() to call is gone with it.
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  std::puts("closed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return std::string_view(argv[1]).ends_with(".so") ? open_and_close(argv[1])
                                                    : run_mode(argv[1]);
}
